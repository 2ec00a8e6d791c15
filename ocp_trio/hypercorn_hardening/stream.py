"""One request and its response, as the application sees them over HTTP/1.1."""

from time import time
from typing import Protocol

import trio
from hypercorn.protocol.events import Response, StreamClosed
from hypercorn.protocol.http_stream import ASGIHTTPState, HTTPStream
from hypercorn.typing import ASGISendEvent, HTTPResponseBodyEvent, HTTPResponseStartEvent, ResponseSummary
from hypercorn.utils import UnexpectedMessageError, build_and_validate_headers, suppress_body

__all__ = ["Stream"]


class Writer(Protocol):
    """What a stream needs of its connection's protocol."""

    async def write(self, head: Response | None, body: bytes, *, last: bool) -> None:
        """Write whatever is given, and the end of the response after it if it is the ``last``, in one piece."""

    async def write_error(self, status: int, method: str) -> None:
        """Answer a request of ``method`` with our error object."""


class Stream(HTTPStream):
    """Upstream's stream, with one write where it has three, and harmless once the peer has gone."""

    writer: Writer
    _head: Response | None = None
    _bodiless = False

    async def app_send(self, message: ASGISendEvent | None) -> None:
        """Take the application's next message; None when it has ended."""
        if message is None:
            await self._end()
        elif self.closed and self.state is not ASGIHTTPState.CLOSED:
            # Nobody reads this any more; an application that does not notice must at least not spin.
            await trio.lowlevel.checkpoint()
        elif message["type"] == "http.response.body" and self.state is ASGIHTTPState.RESPONSE:
            await self._send_body(message)
        elif message["type"] == "http.response.start" and self.state is ASGIHTTPState.REQUEST:
            self._begin(message)
        else:
            raise UnexpectedMessageError(self.state, message["type"])

    def _begin(self, message: HTTPResponseStartEvent) -> None:
        status = int(message["status"])
        # Kept back until the first body message, as ASGI allows: one write, and a failure before it is still a 500.
        self._head = Response(self.stream_id, build_and_validate_headers(message.get("headers", [])), status)
        self._bodiless = suppress_body(self.scope["method"], status)
        self.response = message
        self.state = ASGIHTTPState.RESPONSE

    async def _send_body(self, message: HTTPResponseBodyEvent) -> None:
        head, self._head = self._head, None
        last = not message.get("more_body", False)
        await self.writer.write(head, b"" if self._bodiless else message.get("body", b""), last=last)
        if last and not self.closed:
            await self._log({"status": self.response["status"], "headers": self.response.get("headers", [])})
            await self.send(StreamClosed(self.stream_id))

    async def _end(self) -> None:
        if self.closed:
            return
        if self.state is ASGIHTTPState.REQUEST or self._head is not None:
            await self._send_error_response(500)
        await self.send(StreamClosed(self.stream_id))

    async def _send_error_response(self, status_code: int) -> None:
        self._head = None
        await self.writer.write_error(status_code, self.scope["method"])
        await self._log({"status": status_code, "headers": []})

    async def _log(self, summary: ResponseSummary) -> None:
        self.state = ASGIHTTPState.CLOSED
        await self.config.log.access(self.scope, summary, time() - self.start_time)
