"""HTTP/1.1 as Hypercorn speaks it, minus what lets a peer harm its own request or those of others."""

import re
from typing import Any
from uuid import uuid4

import h11
import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol import ProtocolWrapper
from hypercorn.protocol.events import Body, EndBody, Request, Response
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol

from ocp_trio.hypercorn_hardening.stream import Stream
from ocp_trio.openai.errors import ErrorObject, encode_error

__all__ = ["Overdue", "Unread", "open_protocol"]

_READ_AHEAD = 2**16
"""Bytes of further requests, read during a response, beyond which we read no more: then, and only then, it is not
noticed that the peer has gone."""
_REQUEST_LINE = re.compile(rb"[!-~]+ [!-~]+ HTTP/\d\.\d\r?")
_TARGET = re.compile(rb"/|https?://|\*$")
"""How a target begins, with or without the name of its server; any other is a proxy's."""
_SEPARATORS = len(": \r\n")
_VERSIONS = frozenset({b"1.0", b"1.1"})
_UNANSWERED = frozenset({h11.IDLE, h11.SEND_RESPONSE})
"""Our states in which no response has begun."""
_WHOLE_REQUEST = frozenset({h11.DONE, h11.MUST_CLOSE})
"""States of a peer that has sent all of its request."""
_NOTHING_FOLLOWS = frozenset({h11.MUST_CLOSE, h11.CLOSED, h11.ERROR})
"""States of a peer whose further bytes mean nothing."""

_KIND = "invalid_request_error"
_ERRORS = {
    400: ErrorObject("the request is not valid HTTP/1.1", _KIND, None, "invalid_request"),
    404: ErrorObject("no server of this name is served here", _KIND, None, "not_found"),
    408: ErrorObject("the header of the request did not arrive in time", _KIND, None, "request_timeout"),
    431: ErrorObject("the header of the request is too long", _KIND, None, "invalid_request"),
    500: ErrorObject("internal error", "server_error", None, "internal_error"),
    501: ErrorObject("the transfer encoding of the request is not supported", _KIND, None, "invalid_request"),
    505: ErrorObject("only HTTP/1.1 and HTTP/1.0 are spoken here", _KIND, None, "invalid_request"),
}
"""The error object of each status that is answered here: h11's, and those below and in `Stream`."""


class Unread(Closed):
    """We end a connection although its peer has not finished speaking."""


class Overdue(Closed):
    """The keep-alive timeout has passed without a request."""


def open_protocol(*args: Any) -> ProtocolWrapper | H11Protocol:  # noqa: ANN401 - upstream's arguments, as they are
    """Speak HTTP/2 where TLS negotiated it (the last argument), HTTP/1.1 everywhere else."""
    return ProtocolWrapper(*args) if args[-1] == "h2" else Http1(*args[:-1])


class Http1(H11Protocol):
    """Upstream's HTTP/1.1, without upgrades, with our error object and with bounded waits."""

    connection: h11.Connection
    stream: Stream | None

    async def initiate(self) -> None:
        """Begin a connection."""
        self._parsing = trio.Lock()

    async def handle(self, event: Event) -> None:
        """Take what the transport has to say."""
        if isinstance(event, RawData):
            if self.connection.their_state not in _NOTHING_FOLLOWS:
                self._feed(event.data)
                await self._handle_events()
        elif isinstance(event, Overdue) and self.connection.trailing_data[0]:
            await self._refuse(408)
        elif isinstance(event, Closed):
            await self._close_stream()
            await self.can_read.set()

    def _feed(self, data: bytes) -> None:
        if self.connection.their_state is h11.IDLE and not self.connection.trailing_data[0]:
            # RFC 9112, 2.2: an empty line before a request is ignored. h11 refuses it.
            request = data.lstrip(b"\r\n")
            if data and not request:
                return
            data = request
        self.connection.receive_data(data)

    async def write(self, head: Response | None, body: bytes, *, last: bool) -> None:
        """Write whatever is given, and the end of the response after it if it is the ``last``, in one piece."""
        encode = self.connection.send_with_data_passthrough
        parts: list[bytes] = []
        try:
            if head is not None:
                parts += encode(self._encode_head(head, last=last)) or ()
            if body:
                parts += encode(h11.Data(data=body)) or ()
            if last:
                parts += encode(h11.EndOfMessage()) or ()
        except h11.LocalProtocolError:
            # A peer that broke the protocol has had its answer; the application's own comes too late.
            if self.connection.their_state is not h11.ERROR:
                raise
            return
        if parts:
            await self.send(RawData(b"".join(parts)))

    def _encode_head(self, head: Response, *, last: bool) -> h11.Response:
        headers = [*head.headers, *self.config.response_headers("h11")]
        early = last and self.connection.their_state is h11.SEND_BODY
        if early or self.keep_alive_requests >= self.config.keep_alive_max_requests:
            headers.append((b"connection", b"close"))
        return h11.Response(headers=headers, status_code=head.status_code)

    async def write_error(self, status: int, method: str) -> None:
        """Answer a request of ``method`` with our error object, and announce the end of the connection."""
        body = encode_error(_ERRORS[status])
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            (b"x-request-id", f"req_{uuid4().hex}".encode()),
        ]
        head = Response(STREAM_ID, headers, status)
        await self.write(head, b"" if method == "HEAD" else body, last=True)

    async def _refuse(self, status: int, method: str = "") -> None:
        """End the connection, with an answer if none has begun."""
        if self.connection.our_state in _UNANSWERED:
            await self.write_error(status, method)
        await self.send(Unread())

    async def _handle_events(self) -> None:
        # Two tasks come here: the one that reads, and the one that goes on with what was read during a response.
        async with self._parsing:
            while self.connection.their_state not in _NOTHING_FOLLOWS:
                if self.connection.they_are_waiting_for_100_continue:
                    await self._send_h11_event(
                        h11.InformationalResponse(status_code=100, headers=self.config.response_headers("h11"))
                    )
                try:
                    event = self.connection.next_event()
                except h11.RemoteProtocolError as error:
                    await self._refuse(error.error_status_hint, self.stream.scope["method"] if self.stream else "")
                    return
                if isinstance(event, h11.Request):
                    await self.send(Updated(idle=False))
                    await self._accept(event)
                elif self.stream is None:
                    if not self._may_become_request():
                        await self._refuse(400)
                    return
                elif isinstance(event, h11.Data):
                    await self.stream.handle(Body(STREAM_ID, event.data))
                elif isinstance(event, h11.EndOfMessage):
                    await self.stream.handle(EndBody(STREAM_ID))
                elif event is h11.PAUSED and len(self.connection.trailing_data[0]) > _READ_AHEAD:
                    await self.can_read.clear()
                    await self.can_read.wait()
                else:
                    return

    def _may_become_request(self) -> bool:
        """Whether the first line, once it is there, is one of HTTP/1: h11 looks at it only with all of the head."""
        line, newline, _ = self.connection.trailing_data[0].partition(b"\n")
        return not newline or _REQUEST_LINE.fullmatch(line) is not None

    async def _accept(self, request: h11.Request) -> None:
        method = request.method.decode("ascii")
        # h11 itself notices a long header only while it is incomplete: how it was cut into segments must not decide.
        size = len(method) + len(request.target)
        size += sum(len(name) + len(value) + _SEPARATORS for name, value in request.headers)
        if request.http_version not in _VERSIONS:
            await self._refuse(505, method)
        elif size > self.config.h11_max_incomplete_size:
            await self._refuse(431, method)
        elif not _TARGET.match(request.target):
            await self._refuse(400, method)
        else:
            await self._create_stream(request)

    async def _create_stream(self, request: h11.Request) -> None:
        """Begin an exchange, whatever other protocol the request would rather upgrade to."""
        self.stream = Stream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        self.stream.writer = self
        raw = self.config.h11_pass_raw_headers
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=request.headers.raw_items() if raw else list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
        if self.stream.closed:
            # The server name was refused without an application, so that nobody else ends this exchange.
            await self._maybe_recycle()
        self.keep_alive_requests += 1
        await self.context.mark_request()

    async def _maybe_recycle(self) -> None:
        # Telling the application of the end may cancel the very task that runs this. Nothing here waits for the peer.
        with trio.CancelScope(shield=True):
            await self._close_stream()
            await self.can_read.set()
            ours, theirs = self.connection.our_state, self.connection.their_state
            if self.context.terminated.is_set() or (ours, theirs) != (h11.DONE, h11.DONE):
                await self.send(Closed() if theirs in _WHOLE_REQUEST else Unread())
                return
            if read_ahead := self.connection.trailing_data[0]:
                self.connection = h11.Connection(h11.SERVER, self.config.h11_max_incomplete_size)
                self._feed(read_ahead)
            else:
                self.connection.start_next_cycle()
            await self.send(Updated(idle=True))
            if read_ahead:
                self.task_group.spawn(self._handle_events)
