"""An HTTP/1.1 server on the loopback that answers from a script and remembers what it was asked."""

import json
import math
import socket
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import h11
import trio
from sse_script import Answer, Cut, HttpAnswer, Local, Sleep, Tell, Text, Wait

__all__ = ["Dialect", "RecordedRequest", "ScriptedServer", "open_scripted_server"]


@dataclass(frozen=True)
class RecordedRequest:
    """What the server was asked, and on which connection."""

    method: str
    path: str
    """Path and query, as sent."""
    headers: dict[str, str]
    """Names in lower case."""
    body: Any
    """Decoded JSON; None without a body."""
    received: float
    """Seconds on Trio's clock at which the whole request had arrived."""
    closed: trio.Event
    """Set when the peer has closed or reset the connection that the request came on."""

    @property
    def roles(self) -> list[str]:
        """The role of each message."""
        return [message["role"] for message in self.body["messages"]]

    @property
    def last_user_text(self) -> str:
        """All text of the last user message."""
        last = [message["content"] for message in self.body["messages"] if message["role"] == "user"][-1]
        return last if isinstance(last, str) else "\n".join(part.get("text", "") for part in last)


class Dialect(Protocol):
    """How one API puts a script on the wire."""

    def encode(self, answer: Answer, request: RecordedRequest) -> Iterable[bytes | Local]:
        """Tell ``answer`` as an event stream."""
        ...

    def fold(self, answer: Answer, request: RecordedRequest) -> HttpAnswer:
        """Tell ``answer`` as one JSON body."""
        ...

    def unscripted(self, request: RecordedRequest) -> HttpAnswer | None:
        """Answer whatever does not ask the model; None where the script has to answer."""
        ...


class ScriptedServer:
    """What a running server is to answer, and what it was asked so far.

    Args:
        url: Where it listens, without a trailing slash.
        dialect: The API that it speaks.
    """

    def __init__(self, url: str, dialect: Dialect) -> None:
        self.url = url
        self.dialect = dialect
        self.requests: list[RecordedRequest] = []
        self._scripts: dict[str, list[Answer | HttpAnswer]] = {}
        self._arrivals = trio.lowlevel.ParkingLot()

    def script(self, *answers: Answer | HttpAnswer, on: str = "") -> None:
        """Answer with ``answers`` from now on, in this order, the last one again and again.

        Args:
            answers: They replace what an earlier call with the same ``on`` left over.
            on: Only for requests with this marker in their last user text; they ask the other scripts no more.
        """
        self._scripts[on] = list(answers)

    async def wait_request(self, index: int) -> RecordedRequest:
        """Return the request number ``index``, counted from 0, as soon as it has arrived."""
        while len(self.requests) <= index:
            await self._arrivals.park()
        return self.requests[index]

    def choose(self, request: RecordedRequest) -> Answer | HttpAnswer:
        """Record ``request`` and return its answer; without any script a short text."""
        self.requests.append(request)
        self._arrivals.unpark_all()
        if (unscripted := self.dialect.unscripted(request)) is not None:
            return unscripted
        # The empty marker is in every text, and the shortest.
        for marker in sorted(self._scripts, key=len, reverse=True):
            if marker in request.last_user_text:
                script = self._scripts[marker]
                return script.pop(0) if len(script) > 1 else script[0]
        return Answer(Text("Hello."))


class _Connection:
    """One connection, spoken through h11."""

    def __init__(self, stream: trio.SocketStream, incoming: trio.MemoryReceiveChannel[bytes]) -> None:
        self._stream = stream
        self._incoming = incoming
        self._http = h11.Connection(h11.SERVER)

    async def receive(self, closed: trio.Event) -> RecordedRequest:
        """Return the next request."""
        head = await self._next_event()
        assert isinstance(head, h11.Request), head
        body = bytearray()
        while isinstance(event := await self._next_event(), h11.Data):
            body += event.data
        return RecordedRequest(
            method=head.method.decode(),
            path=head.target.decode(),
            headers={name.decode(): value.decode("latin-1") for name, value in head.headers},
            body=json.loads(body) if body else None,
            received=trio.current_time(),
            closed=closed,
        )

    async def send_whole(self, answer: HttpAnswer, method: str) -> bool:
        """Send ``answer``; return whether the connection may serve another request."""
        if not await self._act(answer.before_headers):
            return False
        headers = {**answer.headers, "content-length": str(len(answer.body))}
        await self._send(h11.Response(status_code=answer.status, headers=list(headers.items())))
        if method != "HEAD":
            await self._send(h11.Data(data=answer.body))
        return await self._finish()

    async def send_stream(self, answer: Answer, encoded: Iterable[bytes | Local]) -> bool:
        """Send ``answer`` as an event stream; return whether the connection may serve another request."""
        if not await self._act(answer.before_headers):
            return False
        await self._send(h11.Response(status_code=200, headers=[("content-type", "text/event-stream")]))
        for item in encoded:
            if isinstance(item, bytes):
                await self._send(h11.Data(data=item))
            elif item == Cut("truncated"):
                break
            elif not await self._act((item,)):
                return False
        return await self._finish()

    async def _act(self, steps: Iterable[Local]) -> bool:
        """Carry out ``steps``; return False as soon as one cuts the connection."""
        for step in steps:
            match step:
                case Sleep(seconds):
                    await trio.sleep(seconds)
                case Wait(event):
                    await event.wait()
                case Tell(event):
                    event.set()
                case Cut(how):
                    if how == "rst":
                        # Lingering for 0 s makes close() reset the connection.
                        self._stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
        return True

    async def _finish(self) -> bool:
        await self._send(h11.EndOfMessage())
        if self._http.our_state is h11.MUST_CLOSE:
            return False
        self._http.start_next_cycle()
        return True

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._incoming.receive())
        return event

    async def _send(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        if data := self._http.send(event):
            await self._stream.send_all(data)


async def _answer_requests(server: ScriptedServer, connection: _Connection, closed: trio.Event) -> None:
    """Answer one request after the other, until an answer ends the connection."""
    more = True
    while more:
        request = await connection.receive(closed)
        answer = server.choose(request)
        if isinstance(answer, Answer) and not request.body.get("stream"):
            answer = server.dialect.fold(answer, request)
        if isinstance(answer, HttpAnswer):
            more = await connection.send_whole(answer, request.method)
        else:
            more = await connection.send_stream(answer, server.dialect.encode(answer, request))


async def serve_connection(server: ScriptedServer, stream: trio.SocketStream) -> None:
    """Read until the peer is gone, and answer meanwhile: so its going away ends an answer at once."""
    # Without a bound: the end of the connection has to be seen whatever the peer sent before.
    send, receive = trio.open_memory_channel[bytes](math.inf)
    closed = trio.Event()
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            try:
                await _answer_requests(server, _Connection(stream, receive), closed)
            except trio.BrokenResourceError:
                closed.set()
            nursery.cancel_scope.cancel()

        nursery.start_soon(answer)
        try:
            async for data in stream:
                send.send_nowait(bytes(data))
        except trio.BrokenResourceError:
            # A reset is a way to close, too.
            pass
        closed.set()
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_scripted_server(dialect: Dialect) -> AsyncIterator[ScriptedServer]:
    """Serve ``dialect`` on a free port of the loopback for the length of a block.

    Cancellation: leaving the block ends every connection at once, in mid-answer too.
    """
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    server = ScriptedServer(f"http://127.0.0.1:{port}", dialect)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, partial(serve_connection, server), listeners)
        yield server
        nursery.cancel_scope.cancel()
