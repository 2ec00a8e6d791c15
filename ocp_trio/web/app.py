"""The web application: its routes, and what holds for all of them."""

import secrets
from collections.abc import Callable

from quart import Response, g, request
from quart.typing import ResponseReturnValue
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import HTTPException

from ocp_trio.completion import Backend
from ocp_trio.errors import (
    InternalError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotFoundError,
    OcpError,
    RequestTimeoutError,
    RequestTooLargeError,
    ShuttingDownError,
)
from ocp_trio.logs import LogRing
from ocp_trio.settings import Settings, is_loopback
from ocp_trio.store import Store
from ocp_trio.web import admin, guards, inspection, live_settings
from ocp_trio.web.callers import ANYBODY, identify
from ocp_trio.web.cancelling import cancel_request
from ocp_trio.web.completions import answer_chat
from ocp_trio.web.connection import HTTPConnection, OwnResponse
from ocp_trio.web.lifecycle import Lifecycle
from ocp_trio.web.site import Site, failure

__all__ = ["create_app"]

BODY_TIMEOUT = 60
"""Seconds that a body may take to arrive."""
PUBLIC = frozenset({"/health"})
"""Paths that need no key."""


class App(QuartTrio):
    """Quart-Trio with our own way to send responses."""

    asgi_http_class = HTTPConnection


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
    app.json.sort_keys = False  # type: ignore[attr-defined]  # of Quart's default provider
    site = Site(backends=backends, settings=settings, ring=ring, lifecycle=lifecycle, store=store, tune=tune)
    _add_guards(app, site)
    _add_error_handlers(app)
    _add_routes(app, site)
    _add_admin_routes(app, site)
    _add_settings_routes(app, site)
    return app


def _add_routes(app: App, site: Site) -> None:
    @app.post("/v1/chat/completions")
    async def chat_completions() -> OwnResponse:
        return await answer_chat(site, g.request_id, g.caller)

    @app.delete("/v1/requests/<request_id>")
    async def cancel(request_id: str) -> ResponseReturnValue:
        return await cancel_request(site, g.caller, request_id)

    @app.get("/v1/models")
    async def models() -> ResponseReturnValue:
        return inspection.list_models(site)

    @app.get("/v1/models/<path:name>")
    async def model(name: str) -> ResponseReturnValue:
        return inspection.one_model(site, name)

    @app.get("/health")
    async def health() -> ResponseReturnValue:
        return inspection.health(site)

    @app.get("/logs")
    async def logs() -> ResponseReturnValue:
        return inspection.newest_logs(site)


def _add_admin_routes(app: App, site: Site) -> None:
    @app.post("/api/keys")
    async def create_key() -> ResponseReturnValue:
        return await admin.create_key(site, g.caller)

    @app.get("/api/keys")
    async def list_keys() -> ResponseReturnValue:
        return await admin.list_keys(site, g.caller)

    @app.delete("/api/keys/<path:id_or_name>")
    async def revoke_key(id_or_name: str) -> ResponseReturnValue:
        return await admin.revoke_key(site, g.caller, id_or_name)

    @app.patch("/api/keys/<path:id_or_name>/quota")
    async def set_quota(id_or_name: str) -> ResponseReturnValue:
        return await admin.set_quota(site, g.caller, id_or_name)

    @app.get("/api/keys/<path:id_or_name>/quota")
    async def read_quota(id_or_name: str) -> ResponseReturnValue:
        return await admin.read_quota(site, g.caller, id_or_name)

    @app.get("/cache/stats")
    async def cache_stats() -> ResponseReturnValue:
        return await admin.cache_stats(site)

    @app.delete("/cache")
    async def clear_cache() -> ResponseReturnValue:
        return await admin.clear_cache(site, g.caller)

    @app.get("/api/usage")
    async def usage() -> ResponseReturnValue:
        return await admin.usage(site, g.caller)


def _add_settings_routes(app: App, site: Site) -> None:
    @app.get("/settings")
    async def settings() -> ResponseReturnValue:
        return live_settings.describe(site, g.caller)

    @app.patch("/settings")
    async def change_settings() -> ResponseReturnValue:
        return await live_settings.change(site, g.caller)


def _add_guards(app: App, site: Site) -> None:
    settings = site.settings

    @app.before_request
    async def guard() -> Response | None:
        g.request_id = f"req_{secrets.token_hex(12)}"
        origin = request.headers.get("origin")
        if is_loopback(settings.bind):
            guards.check_host(request.headers.get("host", ""), settings.allowed_hosts)
        if settings.auth_mode == "none":
            guards.check_origin(origin, settings.allowed_hosts)
        if request.method == "OPTIONS" and not request.path.startswith("/api/"):
            return TrioResponse(b"", status=204, headers=dict(guards.CORS_HEADERS))
        g.caller = ANYBODY
        if request.path not in PUBLIC:
            g.caller = await identify(request.headers, settings, site.store)
        if site.lifecycle.draining and request.method == "POST":
            raise ShuttingDownError("the server is shutting down")
        return None

    @app.after_request
    async def add_headers(response: Response) -> Response:
        response.headers["x-request-id"] = g.get("request_id") or f"req_{secrets.token_hex(12)}"
        # No page of any site may drive the administration.
        shared = response.status_code != 403 and not request.path.startswith("/api/")
        if shared and (origin := request.headers.get("origin")):
            response.headers["access-control-allow-origin"] = origin
            response.headers["vary"] = "Origin"
        return response


def _add_error_handlers(app: App) -> None:
    @app.errorhandler(OcpError)
    async def ours(error: OcpError) -> Response:
        return failure(error)

    @app.errorhandler(HTTPException)
    async def quarts(error: HTTPException) -> Response:
        return failure(_translate(error))


def _translate(error: HTTPException) -> OcpError:
    """Give an error of Quart's own our shape."""
    match error.code:
        case 404:
            return NotFoundError(f"there is nothing at {request.path[:200]!r}")
        case 405:
            allow = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
            return MethodNotAllowedError(f"{request.method} is not allowed here, but {allow}", allow=allow)
        case 408:
            return RequestTimeoutError(f"the body did not arrive within {BODY_TIMEOUT} s")
        case 413:
            return RequestTooLargeError("the request's body is too large (CLAUDE_MAX_BODY_SIZE)")
        case code if code is not None and code < 500:
            return InvalidRequestError("the request is malformed", code="invalid_request")
        case _:
            return InternalError("internal error")
