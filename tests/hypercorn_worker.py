"""Run Hypercorn's Trio worker on the loopback, hardened or as upstream made it, and talk to it in bytes."""

import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import hypercorn.trio
import pytest
import trio
from hypercorn.config import Config
from hypercorn.trio import run, tcp_server
from quart_trio import QuartTrio

from ocp_trio import hypercorn_hardening

if TYPE_CHECKING:
    from hypercorn.typing import Framework

__all__ = [
    "HARDENED",
    "App",
    "Peer",
    "Receive",
    "Reply",
    "Scope",
    "Send",
    "Server",
    "Worker",
    "fails_without_hardening",
    "hypercorn_as_it_was",
    "with_lifespan",
]

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Reply:
    """One response; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The error object, and nothing else, that the body holds."""
        (item,) = json.loads(self.body).items()
        assert item[0] == "error"
        error: dict[str, Any] = item[1]
        return error


class Peer:
    """A client that sends and reads bytes."""

    def __init__(
        self, sock: trio.socket.SocketType, stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]
    ) -> None:
        self.socket = sock
        self.stream = stream
        self._buffer = bytearray()

    @property
    def seen(self) -> bytes:
        """What has been read and not been taken."""
        return bytes(self._buffer)

    async def send_eof(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def request(self, line: str, *headers: str, body: bytes = b"") -> None:
        """Send a request head, and what is to follow it at once."""
        await self.send("\r\n".join([line, "Host: localhost", *headers, "", ""]).encode() + body)

    async def more(self) -> bool:
        """Read some; False at the end."""
        data = await self.stream.receive_some()
        self._buffer += data
        return bool(data)

    async def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            assert await self.more(), f"closed after {bytes(self._buffer)!r}"
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    async def _take_until(self, end: bytes) -> bytes:
        while end not in self._buffer:
            assert await self.more(), f"closed after {bytes(self._buffer)!r}"
        return await self._take(self._buffer.index(end) + len(end))

    async def rest(self) -> bytes:
        """Read until the server closes; a reset is an error."""
        while await self.more():
            pass
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    async def reply(self, *, head_only: bool = False) -> Reply:
        """Read one response, framed as its head says."""
        first, *lines = (await self._take_until(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = int(first.split(" ")[1])
        if head_only or status < 200:
            body = b""
        elif "content-length" in headers:
            body = await self._take(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            chunks = []
            while size := int(await self._take_until(b"\r\n"), 16):
                chunks.append((await self._take(size + 2))[:-2])
            await self._take_until(b"\r\n")
            body = b"".join(chunks)
        else:
            body = await self.rest()
        return Reply(status, headers, body)


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    stop: trio.Event
    """Set to make it shut down."""
    stopped: trio.Event
    """Set when it has."""
    peers: list[Peer] = field(default_factory=list)
    """Who connected; all are closed at the end, whatever became of the test."""

    async def connect(self, *, receive_buffer: int | None = None, tls: ssl.SSLContext | None = None) -> Peer:
        """Connect; ``receive_buffer`` (bytes) bounds what the kernel takes for a peer that does not read."""
        client = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await client.connect(("127.0.0.1", self.port))
        stream = trio.SocketStream(client)
        encrypted = trio.SSLStream(stream, tls, server_hostname="127.0.0.1", https_compatible=True) if tls else None
        self.peers.append(Peer(client, encrypted or stream))
        return self.peers[-1]

    async def ask(self, line: str, *headers: str) -> Reply:
        """Send one request on a connection of its own."""
        peer = await self.connect()
        async with peer.stream:
            await peer.request(line, *headers)
            return await peer.reply()


@contextmanager
def hypercorn_as_it_was() -> Iterator[None]:
    """Undo at the end of a block what was installed in it."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (run, "TCPServer"),
            (run, "worker_serve"),
            (tcp_server, "TaskGroup"),
            (tcp_server, "ProtocolWrapper"),
            (hypercorn.trio, "worker_serve"),
        ):
            patch.setattr(module, name, getattr(module, name))
        yield


@dataclass(frozen=True)
class Worker:
    """How to serve: hardened or not, and how many seconds a test may take."""

    hardened: bool
    patience: float

    @asynccontextmanager
    async def serve(
        self,
        app: App | QuartTrio,
        *,
        write_timeout: float = 30.0,
        drain: Callable[[], Awaitable[None]] | None = None,
        **settings: object,
    ) -> AsyncIterator[Server]:
        """Serve ``app`` for the length of a block, which ends with a shutdown."""
        config = Config.from_mapping({"bind": ["127.0.0.1:0"], "errorlog": None, "graceful_timeout": 0.2} | settings)
        app = app if isinstance(app, QuartTrio) else partial(with_lifespan, app)
        stop, stopped = trio.Event(), trio.Event()
        with hypercorn_as_it_was():
            if self.hardened:
                hypercorn_hardening.install(write_timeout=write_timeout, drain=drain)
            with trio.fail_after(self.patience):
                async with trio.open_nursery() as nursery:
                    binds: list[str] = await nursery.start(partial(_serve, app, config, stop, stopped))
                    server = Server(int(binds[0].rsplit(":", 1)[1]), stop, stopped)
                    try:
                        yield server
                    finally:
                        stop.set()
                        for peer in server.peers:
                            peer.socket.close()


HARDENED = Worker(hardened=True, patience=5)
"""What is served with, as a rule."""


async def _serve(
    app: App | QuartTrio,
    config: Config,
    stop: trio.Event,
    stopped: trio.Event,
    task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED,
) -> None:
    await hypercorn.trio.serve(cast("Framework", app), config, shutdown_trigger=stop.wait, task_status=task_status)
    stopped.set()


async def with_lifespan(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await app(scope, receive, send)
        return
    for stage in "startup", "shutdown":
        await receive()
        await send({"type": f"lifespan.{stage}.complete"})


fails_without_hardening = pytest.mark.parametrize(
    "worker",
    [
        pytest.param(HARDENED, id="hardened"),
        pytest.param(
            Worker(hardened=False, patience=0.4),
            id="upstream",
            marks=pytest.mark.xfail(strict=True, reason="the fault of Hypercorn 0.18 that the hardening mends"),
        ),
    ],
)
"""A fault is shown on both: the day upstream has mended it, its test says so, by passing unhardened."""
