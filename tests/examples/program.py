"""A bare Trio program: print what a child says as it says it, and that it is alive while it says nothing."""
# ruff: noqa: T201  (an example prints)

import os
import sys

import trio

from ocp_trio.errors import OcpError
from ocp_trio.streaming import Sighting, StallLimits, stream_child

COMMAND = ["/bin/sh", "-c", "echo thinking; sleep 1; echo 42; echo done"]


def describe(line: bytes) -> Sighting:
    return Sighting("line", content=True, terminal=line == b"done")


async def main() -> None:
    limits = StallLimits(first_event=300, idle=120)
    try:
        async with stream_child(
            COMMAND, env=os.environ, describe=describe, limits=limits, heartbeat_interval=0.1
        ) as lines:
            async for line in lines:
                print("(still alive)" if line is None else line.decode(), flush=True)
    except OcpError as error:
        sys.exit(f"no answer: {error}")


if __name__ == "__main__":
    trio.run(main)
