"""The web application: its routes, each with its description."""

from collections.abc import Callable
from typing import Any, TypeVar

from quart import Response, g, request
from quart.typing import ResponseReturnValue
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from ocp_trio.completion import Backend
from ocp_trio.logs import LogRing
from ocp_trio.openai.chunk_object import ChunkObject
from ocp_trio.openai.completion_object import CompletionObject
from ocp_trio.openai.parameters import ChatBody
from ocp_trio.settings import Settings
from ocp_trio.store import Store
from ocp_trio.web import admin, answers, inspection, live_settings
from ocp_trio.web.api_document import Json, Operation, build_document
from ocp_trio.web.cancelling import cancel_request
from ocp_trio.web.completions import answer_chat
from ocp_trio.web.connection import HTTPConnection, OwnResponse
from ocp_trio.web.dashboard import page
from ocp_trio.web.feed import Feed, Watching
from ocp_trio.web.hooks import BODY_TIMEOUT, PUBLIC, add_error_handlers, add_guards
from ocp_trio.web.lifecycle import Lifecycle
from ocp_trio.web.options import OptionHeaders
from ocp_trio.web.queries import LogsQuery, UsageQuery
from ocp_trio.web.site import Site

__all__ = ["create_app"]

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class App(QuartTrio):
    """Quart-Trio with our own way to send responses, and a description of each endpoint for ``/openapi.json``."""

    asgi_http_class = HTTPConnection

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.operations: dict[str, Operation] = {}

    def describe(self, operation: Operation) -> Callable[[Endpoint], Endpoint]:
        """Describe the decorated endpoint."""

        def keep(endpoint: Endpoint) -> Endpoint:
            self.operations[endpoint.__name__] = operation
            return endpoint

        return keep


def create_app(
    backends: tuple[Backend, ...],
    settings: Settings,
    *,
    ring: LogRing,
    lifecycle: Lifecycle,
    store: Store | None = None,
    tune: Callable[[Settings], None] = lambda _: None,
) -> App:
    """Build the application; call it inside ``trio.run``.

    Args:
        backends: What serves completions; the first that knows a model serves it.
        settings: All of them.
        ring: The log entries that ``/logs`` shows.
        lifecycle: How the server brings it to an end.
        store: Where keys, quotas and usage are kept; None keeps none.
        tune: Called with all settings when some have been changed; lets the backends follow.
    """
    app = App("ocp_trio")
    # Quart ends every response after RESPONSE_TIMEOUT (60 s by default), silently.
    app.config["RESPONSE_TIMEOUT"] = None
    app.config["BODY_TIMEOUT"] = BODY_TIMEOUT
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_size
    # A path with too many slashes is not there, rather than redirected by a page of HTML.
    app.url_map.merge_slashes = False
    app.json.sort_keys = False  # type: ignore[attr-defined]  # of Quart's default provider
    site = Site(backends=backends, settings=settings, ring=ring, lifecycle=lifecycle, store=store, tune=tune)
    add_guards(app, site)
    add_error_handlers(app)
    _add_routes(app, site)
    _add_admin_routes(app, site)
    _add_settings_routes(app, site)
    _add_dashboard_routes(app, site)
    _add_document(app, settings)
    return app


def _add_routes(app: App, site: Site) -> None:
    @app.post("/v1/chat/completions")
    @app.describe(
        Operation(
            "Complete a chat, as a stream or as one object.",
            body=ChatBody,
            headers=OptionHeaders,
            answer=CompletionObject,
            events=ChunkObject,
        )
    )
    async def chat_completions() -> OwnResponse:
        return await answer_chat(site, g.request_id, g.caller)

    @app.delete("/v1/requests/<request_id>")
    @app.describe(Operation("End a running completion.", answer=answers.Cancelled, statuses=(200, 202)))
    async def cancel(request_id: str) -> ResponseReturnValue:
        return await cancel_request(site, g.caller, request_id)

    @app.get("/v1/models")
    @app.describe(Operation("List the models that are served.", answer=answers.ModelList))
    async def models() -> ResponseReturnValue:
        return inspection.list_models(site)

    @app.get("/v1/models/<path:name>")
    @app.describe(Operation("Show one model by its id or alias.", answer=answers.ModelObject))
    async def model(name: str) -> ResponseReturnValue:
        return inspection.one_model(site, name)

    @app.get("/health")
    @app.describe(Operation("Tell the state of the server.", answer=dict[str, Any]))
    async def health() -> ResponseReturnValue:
        return inspection.health(site)

    @app.get("/logs")
    @app.describe(Operation("Tell the newest log entries.", query=LogsQuery, answer=answers.Logs))
    async def logs() -> ResponseReturnValue:
        return inspection.newest_logs(site)


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
    @app.describe(Operation("Drop all cached answers.", answer=answers.CacheCleared))
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


def _add_dashboard_routes(app: App, site: Site) -> None:
    feed = Feed(site)

    @app.get("/dashboard")
    async def dashboard() -> Response:
        return page(request.path)

    @app.get("/dashboard/<name>")
    async def dashboard_part(name: str) -> Response:
        return page(f"/dashboard/{name}")

    @app.get("/dashboard/events")
    async def dashboard_events() -> Response:
        # To HEAD there is an end.
        return OwnResponse(Watching(feed, g.caller)) if request.method == "GET" else TrioResponse(b"")


def _add_document(app: App, settings: Settings) -> None:
    @app.get("/openapi.json")
    @app.describe(Operation("Describe this API: this document.", answer=dict[str, Any]))
    async def openapi() -> Json:
        return document

    document = build_document(
        app.url_map,
        app.operations,
        title=settings.instance_name,
        public=PUBLIC,
        keys_required=settings.auth_mode != "none",
    )
