"""A Quart-Trio route: stream a child as server-sent events.

``hypercorn --worker-class trio quart_route:app``, then ``curl -N http://127.0.0.1:8000/stream``.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from types import TracebackType

import trio
from quart.wrappers.response import ResponseBody
from quart_trio import QuartTrio
from quart_trio.wrappers import TrioResponse

from ocp_trio.errors import OcpError
from ocp_trio.streaming import Sighting, StallLimits, stream_child

COMMAND = ["/bin/sh", "-c", "echo thinking; sleep 1; echo 42; echo done"]

app = QuartTrio(__name__)


def describe(line: bytes) -> Sighting:
    return Sighting("line", content=True, visible=True, terminal=line == b"done")


async def encode(lines: trio.abc.ReceiveChannel[bytes | None]) -> AsyncGenerator[bytes, None]:
    try:
        async for line in lines:
            yield b": keepalive\n\n" if line is None else b"data: %s\n\n" % line
    except OcpError as error:
        yield b"event: error\ndata: %s\n\n" % str(error).encode()


class ChildBody(ResponseBody):
    """A response's body: Quart enters and leaves it in one task, so that tasks of its own may live in it."""

    async def __aenter__(self) -> AsyncGenerator[bytes, None]:
        limits = StallLimits(first_event=300, idle=120)
        async with AsyncExitStack() as stack:
            lines = await stack.enter_async_context(
                stream_child(COMMAND, env=os.environ, describe=describe, limits=limits, heartbeat_interval=0.1)
            )
            frames = await stack.enter_async_context(aclosing(encode(lines)))
            self._opened = stack.pop_all()
        return frames

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._opened.__aexit__(kind, error, traceback)


@app.get("/stream")
async def stream() -> TrioResponse:
    response = TrioResponse(ChildBody(), mimetype="text/event-stream", headers={"x-accel-buffering": "no"})
    # Quart ends every response after RESPONSE_TIMEOUT (60 s by default), silently.
    response.timeout = None
    return response
