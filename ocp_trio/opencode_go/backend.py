"""Serve completions from OpenCode Go, over HTTP, guarded against stalls."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, NamedTuple

import httpx
import trio

from ocp_trio import __version__
from ocp_trio.completion import BackendState, Batch, CompletionRequest, Model
from ocp_trio.errors import BackendUnavailableError, ModelNotFoundError, SettingError
from ocp_trio.opencode_go import models, requests_anthropic, requests_openai
from ocp_trio.opencode_go.answer import Answer
from ocp_trio.opencode_go.decode_anthropic import AnthropicAnswer
from ocp_trio.opencode_go.decode_openai import OpenAiAnswer
from ocp_trio.opencode_go.models import Flavour, GoModel
from ocp_trio.opencode_go.session import session_id
from ocp_trio.opencode_go.turn import Turn
from ocp_trio.streaming import StallLimits, open_stall_guard, stream_guarded

__all__ = ["BASE_URL", "OpenCodeGoBackend", "open_opencode_go"]

BASE_URL: Final = "https://opencode.ai/zen/go"
"""Where the provider serves both flavours."""
READ_AHEAD = 2**19
"""Bytes of a stream that may wait for its consumer."""
KEEPALIVE_EXPIRY = 30.0
"""Seconds that an idle connection is kept; whoever stands before the provider closes it after a minute or more."""


class _Dialect(NamedTuple):
    """How one flavour asks and answers."""

    path: str
    encode: Callable[[CompletionRequest, GoModel], bytes]
    answer: Callable[[], Answer[Any]]
    key_header: Callable[[str], dict[str, str]]


_DIALECTS: dict[Flavour, _Dialect] = {
    "openai": _Dialect(
        requests_openai.PATH,
        requests_openai.encode_request,
        OpenAiAnswer,
        lambda key: {"authorization": f"Bearer {key}"},
    ),
    "anthropic": _Dialect(
        requests_anthropic.PATH,
        requests_anthropic.encode_request,
        AnthropicAnswer,
        lambda key: {"x-api-key": key, "anthropic-version": requests_anthropic.VERSION},
    ),
}


class OpenCodeGoBackend:
    """Serves completions over HTTP; made by `open_opencode_go`."""

    name: Final = "opencode-go"
    starts_at_once: Final = False

    def __init__(self, client: httpx.AsyncClient, key: str, limits: StallLimits, max_connections: int) -> None:
        self._client = client
        self._key = key
        self._limits = limits
        self._max_connections = max_connections
        self._connections = trio.Semaphore(max_connections)

    @property
    def models(self) -> tuple[Model, ...]:
        """The models known to exist."""
        return models.served()

    @property
    def state(self) -> BackendState:
        """How many requests are being answered, and how many wait for a connection."""
        in_flight = self._max_connections - self._connections.value
        queued = self._connections.statistics().tasks_waiting
        return BackendState(in_flight=in_flight, queued=queued, max_concurrent=self._max_connections)

    def tune(self, *, first_event_timeout: float, idle_timeout: float, keepalive_cap: float) -> None:
        """Change what `open_opencode_go` was told, for requests that come."""
        self._limits = _stall_limits(first_event_timeout, idle_timeout, keepalive_cap)

    def resolve(self, model: str) -> str | None:
        """Return the id of a model by its name, with ``opencode-go/`` before it or without; None if it is unknown."""
        return models.resolve(model)

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Wait for a place among the connections, ask, and stream the answer for the length of the block.

        The stall guard's clock runs from before the request is sent. What upstream refuses is raised by the first
        iteration; `Started` comes when upstream has begun to answer.

        Cancellation: at once; leaving the block closes the connection unless its answer is complete, and takes at most
        0.1 seconds if it is.

        Raises:
            ModelNotFoundError: the model is not known.
        """
        model = models.find(request.model)
        if model is None:
            raise ModelNotFoundError(f"the model {request.model[:100]!r} is not served by OpenCode Go")
        dialect = _DIALECTS[model.flavour]
        asked = self._ask(request, model, dialect)
        arrived, must_wait = trio.current_time(), not self._connections.value
        async with self._connections, open_stall_guard(self._limits) as guard:
            queued = trio.current_time() - arrived if must_wait else 0.0
            turn = Turn(self._client, asked, dialect.answer(), guard, self._key, queued=queued)
            async with (
                stream_guarded(
                    turn.open(),
                    guard,
                    describe=lambda piece: piece.sighting,
                    size=lambda piece: piece.size,
                    read_ahead=READ_AHEAD,
                    failures=(),
                ) as pieces,
                aclosing(turn.tell(pieces)) as batches,
            ):
                yield batches

    def _ask(self, request: CompletionRequest, model: GoModel, dialect: _Dialect) -> httpx.Request:
        headers = {
            **dialect.key_header(self._key),
            "content-type": "application/json",
            "x-opencode-session": session_id(self._key, request),
        }
        return self._client.build_request("POST", dialect.path, headers=headers, content=dialect.encode(request, model))


@asynccontextmanager
async def open_opencode_go(
    key: str,
    *,
    base_url: str = BASE_URL,
    first_event_timeout: float = 300.0,
    idle_timeout: float = 120.0,
    keepalive_cap: float = 300.0,
    max_connections: int = 100,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[OpenCodeGoBackend]:
    """Serve completions from OpenCode Go for the length of a block.

    Proxies and certificates are taken from the environment, as httpx does (``HTTPS_PROXY``, ``SSL_CERT_FILE`` ...).

    Args:
        key: The provider's key.
        base_url: Where the provider is; both flavours' paths, which begin with ``/v1``, follow it.
        first_event_timeout: Seconds until the first content, connecting included; 0 and `math.inf` turn it off.
        idle_timeout: Seconds between two signs of life; 0 and `math.inf` turn it off.
        keepalive_cap: Seconds between two events while only keep-alives come; 0 and `math.inf` turn it off.
        max_connections: Requests at once; more wait in order, and no clock of theirs runs.
        transport: What carries the requests in place of the network; then no proxy is used.

    Cancellation: at once; streams have blocks of their own.

    Raises:
        BackendUnavailableError: there is no key, or it is none that a header can carry; or the environment names a
            proxy or certificates that cannot be used.
        SettingError: ``base_url`` is no http or https address.
    """
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise BackendUnavailableError("OPENCODE_API_KEY holds no key that can be sent")
    limits = _stall_limits(first_event_timeout, idle_timeout, keepalive_cap)
    async with _make_client(_checked(base_url), max_connections, transport) as client:
        yield OpenCodeGoBackend(client, key, limits, max_connections)


def _stall_limits(first_event_timeout: float, idle_timeout: float, keepalive_cap: float) -> StallLimits:
    return StallLimits(
        first_event_timeout,
        idle_timeout,
        keepalive_cap,
        first_event_setting="OPENCODE_GO_FIRST_EVENT_TIMEOUT",
        idle_setting="OPENCODE_GO_IDLE_TIMEOUT",
        keepalive_cap_setting="OPENCODE_GO_KEEPALIVE_CAP",
    )


def _make_client(
    base_url: httpx.URL, max_connections: int, transport: httpx.AsyncBaseTransport | None
) -> httpx.AsyncClient:
    # A server that compresses holds events back until it has enough of them.
    headers = {"user-agent": f"ocp-trio/{__version__}", "accept": "text/event-stream", "accept-encoding": "identity"}
    try:
        return httpx.AsyncClient(
            base_url=base_url,
            headers=headers,
            # No cookie of one caller's answer is sent with another's request.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            timeout=None,  # noqa: S113 (the stall guard is the only clock)
            # Requests wait for a place among `max_connections` before they come here.
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=max_connections, keepalive_expiry=KEEPALIVE_EXPIRY
            ),
            transport=transport,
        )
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        problem = "OpenCode Go cannot be asked: the environment names a proxy or certificates that cannot be used"
        raise BackendUnavailableError(problem) from error


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo or url.query or url.fragment:
        raise SettingError("OPENCODE_GO_BASE_URL", base_url, "an http or https address is expected")
    return url.copy_with(path=url.path.rstrip("/").removesuffix("/v1"))
