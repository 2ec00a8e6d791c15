"""The web application: its routes, each with its description."""

from collections.abc import Callable
from typing import Any

from quart import Response, g, request
from quart.typing import ResponseReturnValue
from quart_trio.wrappers import TrioResponse

from ocp_trio.completion import Backend
from ocp_trio.logs import LogRing
from ocp_trio.openai.chunk_object import ChunkObject
from ocp_trio.openai.completion_object import CompletionObject
from ocp_trio.openai.parameters import ChatBody
from ocp_trio.settings import Settings
from ocp_trio.store import Store
from ocp_trio.web import answers, inspection
from ocp_trio.web.api_document import Json, Operation, build_document
from ocp_trio.web.cancelling import cancel_request
from ocp_trio.web.completions import answer_chat
from ocp_trio.web.connection import OwnResponse
from ocp_trio.web.dashboard import page
from ocp_trio.web.described import App
from ocp_trio.web.feed import Feed, Watching
from ocp_trio.web.hooks import BODY_TIMEOUT, PUBLIC, add_error_handlers, add_guards
from ocp_trio.web.lifecycle import Lifecycle
from ocp_trio.web.metrics import SiteCollector
from ocp_trio.web.operating import add_operating_routes
from ocp_trio.web.options import OptionHeaders
from ocp_trio.web.queries import LogsQuery
from ocp_trio.web.site import Site

__all__ = ["create_app"]


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
    site.metrics.registry.register(SiteCollector(site))
    add_guards(app, site)
    add_error_handlers(app)
    _add_routes(app, site)
    add_operating_routes(app, site)
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

    @app.get("/logs")
    @app.describe(Operation("Tell the newest log entries.", query=LogsQuery, answer=answers.Logs))
    async def logs() -> ResponseReturnValue:
        return inspection.newest_logs(site, g.caller)


def _add_dashboard_routes(app: App, site: Site) -> None:
    feed = Feed(site)

    @app.get("/dashboard")
    async def dashboard() -> Response:
        return page(request.path)

    @app.get("/dashboard/")
    async def dashboard_folder() -> Response:
        return TrioResponse(b"", status=308, headers={"location": "../dashboard"})

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
