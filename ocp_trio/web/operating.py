"""The routes by which a server is operated, each with its description."""

from typing import Any

from quart import g, request
from quart.typing import ResponseReturnValue
from quart_trio.wrappers import TrioResponse

from ocp_trio.web import admin, answers, live_settings, status
from ocp_trio.web.api_document import Operation
from ocp_trio.web.described import App
from ocp_trio.web.queries import UsageQuery
from ocp_trio.web.site import Site
from ocp_trio.web.status_answers import Health, PlanUsage, Status

__all__ = ["add_operating_routes"]


def add_operating_routes(app: App, site: Site) -> None:
    """Add them all."""
    _add_status_routes(app, site)
    _add_admin_routes(app, site)
    _add_settings_routes(app, site)


def _add_status_routes(app: App, site: Site) -> None:
    @app.get("/health")
    @app.describe(Operation("Tell the state of the server.", answer=Health))
    async def health() -> ResponseReturnValue:
        return status.health(site)

    @app.get("/status")
    @app.describe(Operation("Tell it in short, with the newest errors.", answer=Status))
    async def current_status() -> ResponseReturnValue:
        return status.status(site, g.caller)

    @app.get("/usage")
    @app.describe(Operation("Tell the subscription's limits, and what each model did.", answer=PlanUsage))
    async def plan_usage() -> ResponseReturnValue:
        return status.plan_usage(site)

    @app.get("/metrics")
    @app.describe(Operation("Tell Prometheus what the server does.", answer=str, media="text/plain"))
    async def metrics() -> ResponseReturnValue:
        body, media = site.metrics.render(request.headers.get("accept", ""))
        return TrioResponse(body, content_type=media)


def _add_admin_routes(app: App, site: Site) -> None:
    @app.post("/api/keys")
    @app.describe(
        Operation("Make a key.", body=admin.NewKeyBody, answer=answers.CreatedKey, statuses=(201,), admin=True)
    )
    async def create_key() -> ResponseReturnValue:
        return await admin.create_key(site, g.caller)

    @app.get("/api/keys")
    @app.describe(Operation("List all keys.", answer=answers.KeyList, admin=True))
    async def list_keys() -> ResponseReturnValue:
        return await admin.list_keys(site, g.caller)

    @app.delete("/api/keys/<path:id_or_name>")
    @app.describe(Operation("Take a key out of service.", answer=answers.KeyRevoked, admin=True))
    async def revoke_key(id_or_name: str) -> ResponseReturnValue:
        return await admin.revoke_key(site, g.caller, id_or_name)

    @app.patch("/api/keys/<path:id_or_name>/quota")
    @app.describe(Operation("Replace a key's quota.", body=admin.QuotaBody, answer=answers.QuotaSet, admin=True))
    async def set_quota(id_or_name: str) -> ResponseReturnValue:
        return await admin.set_quota(site, g.caller, id_or_name)

    @app.get("/api/keys/<path:id_or_name>/quota")
    @app.describe(Operation("Tell limits and use of a key.", answer=answers.KeyQuota, admin=True))
    async def read_quota(id_or_name: str) -> ResponseReturnValue:
        return await admin.read_quota(site, g.caller, id_or_name)

    @app.get("/cache/stats")
    @app.describe(Operation("Tell what the cache holds.", answer=answers.CacheState))
    async def cache_stats() -> ResponseReturnValue:
        return await admin.cache_stats(site)

    @app.delete("/cache")
    @app.describe(Operation("Drop all cached answers.", answer=answers.CacheCleared, admin=True))
    async def clear_cache() -> ResponseReturnValue:
        return await admin.clear_cache(site, g.caller)

    @app.get("/api/usage")
    @app.describe(Operation("Report usage: one's own, or everybody's.", query=UsageQuery, answer=answers.UsageReport))
    async def usage() -> ResponseReturnValue:
        return await admin.usage(site, g.caller)


def _add_settings_routes(app: App, site: Site) -> None:
    @app.get("/settings")
    @app.describe(Operation("Tell all settings.", answer=dict[str, live_settings.SettingDescription], admin=True))
    async def settings() -> ResponseReturnValue:
        return live_settings.describe(site, g.caller)

    @app.patch("/settings")
    @app.describe(
        Operation(
            "Change settings while the server runs.",
            body=dict[str, Any],
            answer=live_settings.SettingChanges,
            statuses=(200, 207),
            admin=True,
        )
    )
    async def change_settings() -> ResponseReturnValue:
        return await live_settings.change(site, g.caller)
