"""Small applications for a Hypercorn worker under test."""

from collections.abc import AsyncIterator

import trio
from hypercorn_worker import App, Receive, Scope, Send
from quart_trio import QuartTrio

__all__ = [
    "echo",
    "end",
    "flood_until_disconnect",
    "more",
    "quart_app",
    "read_body",
    "silent_until_disconnect",
    "start",
    "wait_for_disconnect",
]


async def start(send: Send, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def more(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def end(send: Send, body: bytes = b"") -> None:
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive) -> bytes:
    """Read the whole body; a disconnect is a `ConnectionError`."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError
        body += bytes(message["body"])
        if not message["more_body"]:
            return body


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what was asked."""
    body = f"{scope['method']} {scope['path']} ".encode() + await read_body(receive)
    await start(send, 200, (b"content-length", b"%d" % len(body)))
    await end(send, body)


def silent_until_disconnect(told: trio.Event) -> App:
    """Make an application that never answers, and reports that its client has gone."""

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        await wait_for_disconnect(receive)
        told.set()

    return app


def flood_until_disconnect(told: trio.Event) -> App:
    """Make an application that sends 50 MiB, and reports that its client has gone."""

    async def flood(send: Send) -> None:
        await start(send)
        for _ in range(50):
            await more(send, bytes(2**20))

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood, send)
            await wait_for_disconnect(receive)
            told.set()

    return app


def quart_app() -> QuartTrio:
    """Make an application whose requests are cancelled by a disconnect."""
    app = QuartTrio(__name__)

    @app.get("/")
    async def whole() -> str:
        return "whole"

    @app.get("/stream")
    async def stream() -> AsyncIterator[bytes]:
        for piece in b"str", b"eam":
            yield piece

    return app
