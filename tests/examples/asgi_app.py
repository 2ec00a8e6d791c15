"""A raw ASGI application for Hypercorn's Trio worker: stream a child as server-sent events.

``hypercorn --worker-class trio asgi_app:app``, then ``curl -N http://127.0.0.1:8000/``.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from ocp_trio.errors import OcpError
from ocp_trio.streaming import Sighting, StallLimits, stream_child

COMMAND = ["/bin/sh", "-c", "echo thinking; sleep 1; echo 42; echo done"]
HEADERS = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def describe(line: bytes) -> Sighting:
    return Sighting("line", content=True, visible=True, terminal=line == b"done")


async def stream(write: Callable[[bytes], Awaitable[None]]) -> None:
    limits = StallLimits(first_event=300, idle=120)
    try:
        async with stream_child(
            COMMAND, env=os.environ, describe=describe, limits=limits, heartbeat_interval=0.1
        ) as lines:
            async for line in lines:
                await write(b": keepalive\n\n" if line is None else b"data: %s\n\n" % line)
    except OcpError as error:
        await write(b"event: error\ndata: %s\n\n" % str(error).encode())


async def cancel_on_disconnect(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        # Servers take this for: it has no use for lifespan events, nor for websockets.
        raise NotImplementedError

    async def write(frames: bytes, *, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": frames, "more_body": more})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_on_disconnect, receive, nursery.cancel_scope)
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await stream(write)
        await write(b"", more=False)
        nursery.cancel_scope.cancel()
