"""Ask over HTTP, and hold a response open exactly as long as it is wanted.

A request that fails before anything of its answer has come is sent once more; nothing is retried after that. Redirects
are refused: the key goes to one host only.
"""

import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import httpx
import trio

from ocp_trio.errors import OcpError, UpstreamError, UpstreamIncompleteError
from ocp_trio.opencode_go.errors import classify, parse_report, retry_after
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["Exchange", "open_exchange"]

END = 0.1
"""Seconds in which a complete answer's body may come to its end, so that its connection can be used again."""
AHEAD = 2**16
"""Bytes that are read ahead of whoever receives them, as many as one read from the connection brings."""
ERROR_BODY = 5.0
"""Seconds in which the body of an error may arrive."""
MAX_ERROR_BODY = 2**16
"""Bytes of an error's body that are read."""
STREAM = "text/event-stream"

logger = logging.getLogger("ocp_trio.opencode_go")


class _Connecting:
    """Closes the connection that a request was given, unless the request is answered.

    httpcore 1.0 forgets a socket when it is cancelled in the middle of a TLS handshake.
    """

    def __init__(self) -> None:
        self._stream: trio.abc.AsyncResource | None = None

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the connection; this is httpcore's ``trace`` extension."""
        if event == "connection.connect_tcp.complete":
            self._stream = info["return_value"]

    def answered(self) -> None:
        """Leave the connection to the response."""
        self._stream = None

    async def aclose(self) -> None:
        """Close it; shielded, as this waits for nothing."""
        if self._stream is not None:
            with trio.CancelScope(shield=True):
                await self._stream.aclose()


class Exchange:
    """A response whose body is being read; made by `open_exchange`.

    Attributes:
        complete: Set once the answer is known to be complete: the connection is then kept for the next request.
        ended: Set once the body has come to its end, or the connection to its.
    """

    def __init__(self, response: httpx.Response) -> None:
        self.complete = False
        self.ended = trio.Event()
        self._response = response
        self._chunks = response.aiter_bytes()
        self._read = bytearray()
        self._changed = trio.lowlevel.ParkingLot()
        self._error: httpx.HTTPError | None = None

    async def read(self) -> None:
        """Read the body to its end, ahead of whoever receives it, so that what comes at once is received at once.

        Cancellation: at once. The chunks' generators are nested, and only an end from within closes all of them.
        """
        try:
            async for data in self._chunks:
                self._read += data
                self._changed.unpark_all()
                while len(self._read) >= AHEAD:
                    await self._changed.park()
        except httpx.HTTPError as error:
            self._error = error
        finally:
            self.ended.set()
            self._changed.unpark_all()
            with trio.move_on_after(0), suppress(httpx.HTTPError):
                async for _ in self._chunks:
                    pass

    async def receive_some(self) -> bytes:
        """Return all that has come of the body, and at least something; ``b""`` at its end.

        Raises:
            UpstreamIncompleteError: the connection broke.
        """
        while not self._read and not self.ended.is_set():
            await self._changed.park()
        data = bytes(self._read)
        self._read.clear()
        self._changed.unpark_all()
        if not data and self._error is not None:
            logger.info("upstream_broke", extra={"error": _name(self._error)})
            problem = "the connection to upstream broke before its answer was complete"
            raise UpstreamIncompleteError(problem) from self._error
        return data

    async def check(self, secret: str) -> None:
        """Return if the response is a stream of events.

        Raises:
            OcpError: what else it is.
        """
        status, headers = self._response.status_code, self._response.headers
        kind = headers.get("content-type", STREAM).partition(";")[0].strip().lower()
        if status == 200 and kind not in {"application/json", "text/html"}:
            return
        report = parse_report(await self._read_error())
        if status == 200 or 300 <= status < 400:
            error: OcpError = UpstreamError(f"upstream answered with {kind or 'nothing'} (status {status}), no stream")
            if status == 200 and report is not None:
                error = classify(report, secret=secret)
        else:
            error = classify(report, status=status, retry_after=retry_after(headers), secret=secret)
        logger.info("upstream_refused", extra={"status": status, "words": sorted(report.words if report else ())})
        raise error

    async def _read_error(self) -> bytes:
        body = b""
        with trio.move_on_after(ERROR_BODY):
            while len(body) < MAX_ERROR_BODY and (data := await self.receive_some()):
                body += data
        return body


@asynccontextmanager
async def open_exchange(client: httpx.AsyncClient, request: httpx.Request) -> AsyncIterator[Exchange]:
    """Send a request and hold its response open for the length of a block.

    Cancellation: at once, in whatever state the connection is: it is closed, and nothing is drained.

    Raises:
        UpstreamError: there is no answer, after two attempts where the first came to nothing.
    """
    response = await _send(client, request)
    exchange = Exchange(response)
    with unwrap_lone_error():
        async with aclosing(response), trio.open_nursery() as nursery:
            nursery.start_soon(exchange.read)
            yield exchange
            with trio.move_on_after(END if exchange.complete else 0):
                await exchange.ended.wait()
            nursery.cancel_scope.cancel()


async def _send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    try:
        return await _attempt(client, request)
    except httpx.TransportError as error:
        if not _unanswered(error):
            raise _unreachable(error) from error
        logger.info("upstream_retry", extra={"error": _name(error)})
    try:
        return await _attempt(client, request)
    except httpx.TransportError as error:
        raise _unreachable(error) from error


async def _attempt(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    async with aclosing(_Connecting()) as connecting:
        request.extensions["trace"] = connecting.trace
        response = await client.send(request, stream=True)
        connecting.answered()
        return response


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _unanswered(error: httpx.TransportError) -> bool:
    """Whether a request failed before anything of its answer came, and might not fail again."""
    causes = _causes(error)
    if isinstance(error, httpx.RemoteProtocolError):
        # What h11 objects to has come off the wire; without its objection the connection was just closed.
        return not any(type(cause).__module__.startswith("h11") for cause in causes)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return False
    return isinstance(error, httpx.NetworkError)


def _unreachable(error: httpx.TransportError) -> UpstreamError:
    logger.warning("upstream_unreachable", extra={"error": _name(error)})
    if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
        return UpstreamError("upstream cannot be reached: no secure connection can be made")
    if isinstance(error, httpx.ConnectError):
        return UpstreamError("upstream cannot be reached: no connection can be made")
    return UpstreamError("upstream cannot be reached: the connection broke before it answered")


def _name(error: Exception) -> str:
    """Say what went wrong, for the log: what the system says of a connection holds no secret."""
    return f"{type(error).__name__}: {error}"
