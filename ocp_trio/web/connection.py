"""Send responses over ASGI so that nothing between us and the socket cuts them short."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Protocol, cast

import trio
from hypercorn.typing import ASGISendCallable
from quart.typing import ResponseTypes
from quart_trio.asgi import TrioASGIHTTPConnection
from quart_trio.wrappers import TrioResponse

__all__ = ["HTTPConnection", "OwnResponse", "Send", "send_whole"]

Send = Callable[[dict[str, Any]], Awaitable[None]]

LAST_SEND = 60.0
"""Seconds that the last piece of a response may take; the server's own write limit is shorter."""


class Responder(Protocol):
    """What writes a response by itself."""

    async def respond(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the whole response; ``headers`` are those that every response has."""
        ...


class OwnResponse(TrioResponse):
    """A response that is written by ``responder``, inside its request's own nursery."""

    def __init__(self, responder: Responder) -> None:
        super().__init__()
        self.responder = responder


async def send_whole(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Send a response that is complete."""
    headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class HTTPConnection(TrioASGIHTTPConnection):
    """Quart-Trio's connection, with a last send that a disconnect does not cut."""

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        async def send_shielded(message: dict[str, Any]) -> None:
            # The server delivers http.disconnect inside the last send of every response, and Quart-Trio cancels the
            # request there: unshielded, the connection would never be closed or used again.
            last = message["type"] == "http.response.body" and not message["more_body"]
            with trio.move_on_after(LAST_SEND, shield=True) if last else nullcontext():
                await cast("Send", send)(message)

        if isinstance(response, OwnResponse):
            response.headers.remove("content-type")
            headers = [(name.lower().encode(), value.encode()) for name, value in response.headers.items()]
            await response.responder.respond(send_shielded, headers)
        else:
            await super()._send_response(cast("ASGISendCallable", send_shielded), response)
