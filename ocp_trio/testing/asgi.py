"""Talk to an ASGI application inside the test's own event loop, with back-pressure and disconnects."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import trio

from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["AsgiExchange", "http_scope", "open_asgi_exchange"]

Message: TypeAlias = dict[str, Any]
Application: TypeAlias = Callable[..., Awaitable[None]]


class AsgiExchange:
    """One request and its response, as the client sees them; made by `open_asgi_exchange`.

    Attributes:
        status: Status of the response, once `head` has returned.
        headers: Its headers, names in lower case.
    """

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        # Capacity 0: the application's send waits until the test reads, as a socket's would in the end.
        self._sent, self._received = trio.open_memory_channel[Message](0)
        self._request = [{"type": "http.request", "body": body, "more_body": False}]
        self._gone = trio.Event()
        self._more = True

    async def head(self) -> int:
        """Wait for the response's head and return its status."""
        message = await self._received.receive()
        self.status = message["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        return self.status

    async def receive_some(self) -> bytes:
        """Return the next piece of the body as it was sent, never empty; ``b""`` at its end."""
        while self._more:
            message = await self._received.receive()
            self._more = message.get("more_body", False)
            if message.get("body"):
                return bytes(message["body"])
        return b""

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body up to its end."""
        while piece := await self.receive_some():
            yield piece

    async def body(self) -> bytes:
        """Wait for the head if need be, and for the whole body."""
        if not self.status:
            await self.head()
        return b"".join([piece async for piece in self.pieces()])

    def disconnect(self) -> None:
        """Leave, as a client does that closes its connection: what the application still sends is lost."""
        self._gone.set()
        self._received.close()

    async def run(self, application: Application, scope: Message) -> None:
        """Run the application for this request."""
        with self._sent:
            await application(scope, self._receive, self._send)

    async def _send(self, message: Message) -> None:
        try:
            await self._sent.send(message)
        except trio.BrokenResourceError:
            return
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            # Servers tell of the end of the exchange inside of the last send.
            self._gone.set()

    async def _receive(self) -> Message:
        if self._request:
            return self._request.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}


@asynccontextmanager
async def open_asgi_exchange(
    application: Application,
    path: str,
    *,
    method: str = "POST",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[AsgiExchange]:
    """Send a request to an ASGI application for the length of a block.

    Leaving the block waits until the application has ended; a client that leaves early calls `AsgiExchange.disconnect`
    before.

    Args:
        application: Any ASGI application.
        path: Path, with a query if need be.
        method: HTTP method.
        body: The whole body.
        headers: Header fields beside Host.

    Cancellation: cancels the application, and waits until it has ended.
    """
    exchange = AsgiExchange(body)
    fields = {"content-length": str(len(body)), **(headers or {})}
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange.run, application, http_scope(path, method=method, headers=fields))
            yield exchange


def http_scope(path: str, *, method: str = "POST", headers: Mapping[str, str] | None = None) -> Message:
    """Make the ASGI scope of a request.

    Args:
        path: Path, with a query if need be.
        method: HTTP method.
        headers: Header fields; the host is ``localhost`` unless they say otherwise.
    """
    raw_path, _, query = path.partition("?")
    fields = {"host": "localhost", **(headers or {})}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": raw_path,
        "raw_path": raw_path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in fields.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "extensions": {},
    }
