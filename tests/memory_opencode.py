"""The mock of OpenCode Go over memory streams, for the mock clock: all of httpx is real but the network beneath."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpcore
import httpx
import trio
import trio.testing
from mock_opencode import OpenCodeDialect
from scripted_server import ScriptedServer, serve_connection

__all__ = ["MemoryProvider", "open_memory_opencode"]


class _MemoryStream(httpcore.AsyncNetworkStream):
    """A memory stream, as httpcore reads and writes it."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 (httpcore calls it)
        try:
            return bytes(await self._stream.receive_some(max_bytes))
        except trio.BrokenResourceError as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 (httpcore calls it)
        try:
            await self._stream.send_all(buffer)
        except trio.BrokenResourceError as error:
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:  # noqa: ARG002 (nothing is known of it)
        return None


class MemoryProvider(ScriptedServer, httpcore.AsyncNetworkBackend):
    """The mock at the other end of memory streams.

    Attributes:
        transport: What reaches it.
        connecting: Seconds that a connection takes to be made; `math.inf` never makes one.
        refuse: How many connections fail before one succeeds.
        attempts: How many connections were tried.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__("http://provider.invalid", OpenCodeDialect())
        self.connecting = 0.0
        self.refuse = 0
        self.attempts = 0
        self._nursery = nursery
        self._handler: Callable[[Any], Awaitable[None]] = partial(serve_connection, self)
        # Loading certificates takes longer than most tests.
        self.transport = httpx.AsyncHTTPTransport(verify=False)
        self.transport._pool = httpcore.AsyncConnectionPool(network_backend=self)

    def serve_instead(self, handler: Callable[[Any], Awaitable[None]]) -> None:
        """Let ``handler`` speak on each connection from now on; when it returns, the connection stays open."""

        async def serve(stream: Any) -> None:
            await handler(stream)
            await trio.sleep_forever()

        self._handler = serve

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Connect to the mock, whatever host is asked for."""
        self.attempts += 1
        await trio.sleep(self.connecting)
        if self.attempts <= self.refuse:
            raise httpcore.ConnectError("refused")
        ours, theirs = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self._serve, theirs)
        return _MemoryStream(ours)

    async def _serve(self, stream: Any) -> None:
        try:
            await self._handler(stream)
        finally:
            await trio.aclose_forcefully(stream)


@asynccontextmanager
async def open_memory_opencode() -> AsyncIterator[MemoryProvider]:
    """Serve the mock over memory streams for the length of a block."""
    async with trio.open_nursery() as nursery:
        yield MemoryProvider(nursery)
        nursery.cancel_scope.cancel()
