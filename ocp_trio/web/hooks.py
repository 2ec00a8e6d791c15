"""What holds for every request: who may call, the headers of every response, and the shape of every error."""

import secrets

from quart import Response, g, request
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse
from werkzeug.exceptions import HTTPException

from ocp_trio.errors import (
    InternalError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotFoundError,
    OcpError,
    PermissionDeniedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ShuttingDownError,
)
from ocp_trio.settings import is_loopback
from ocp_trio.web import guards
from ocp_trio.web.callers import ANYBODY, identify
from ocp_trio.web.dashboard import PAGES
from ocp_trio.web.site import Site, failure

__all__ = ["BODY_TIMEOUT", "PUBLIC", "add_error_handlers", "add_guards"]

BODY_TIMEOUT = 60
"""Seconds that a body may take to arrive."""
PUBLIC = frozenset({"/health", "/openapi.json", "/dashboard/", *PAGES})
"""Paths that need no key: the dashboard's page asks for one itself."""


def _is_shared(path: str) -> bool:
    """Whether pages of other sites may read what is here; none of them may drive or see the administration."""
    return path.startswith("/v1/") or path in {"/health", "/openapi.json"}


def add_guards(app: QuartTrio, site: Site) -> None:
    """Let nobody in who may not, and give every response its headers."""
    settings = site.settings

    @app.before_request
    async def guard() -> Response | None:
        g.request_id = f"req_{secrets.token_hex(12)}"
        origin = request.headers.get("origin")
        if is_loopback(settings.bind):
            guards.check_host(request.headers.get("host", ""), settings.allowed_hosts)
        if settings.auth_mode == "none":
            guards.check_origin(origin, settings.allowed_hosts)
        if request.method == "OPTIONS" and _is_shared(request.path):
            return TrioResponse(b"", status=204, headers=guards.preflight_headers(request.headers))
        g.caller = ANYBODY
        if request.path not in PUBLIC:
            g.caller = await identify(request.headers, settings, site.store, site.known_keys)
            if g.caller.is_anonymous and not request.path.startswith("/v1/"):
                raise PermissionDeniedError("this needs a key of one's own")
        if site.lifecycle.draining and request.method == "POST":
            raise ShuttingDownError("the server is shutting down")
        return None

    @app.after_request
    async def add_headers(response: Response) -> Response:
        response.headers["x-request-id"] = g.get("request_id") or f"req_{secrets.token_hex(12)}"
        shared = response.status_code != 403 and _is_shared(request.path)
        if shared and (origin := request.headers.get("origin")):
            response.headers["access-control-allow-origin"] = origin
            response.headers["access-control-expose-headers"] = guards.EXPOSED
            response.headers["vary"] = "Origin"
        return response


def add_error_handlers(app: QuartTrio) -> None:
    """Report every error in one shape."""

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
            return MethodNotAllowedError(f"{request.method[:20]} is not allowed here, but {allow}", allow=allow)
        case 408:
            return RequestTimeoutError(f"the body did not arrive within {BODY_TIMEOUT} s")
        case 413:
            return RequestTooLargeError("the request's body is too large (CLAUDE_MAX_BODY_SIZE)")
        case code if code is not None and code < 500:
            return InvalidRequestError("the request is malformed", code="invalid_request")
        case _:
            return InternalError("internal error")
