"""Ask the CLI for its version."""

import re
from collections.abc import Mapping

import trio

from ocp_trio.errors import ChildSpawnError
from ocp_trio.streaming import open_child_process

__all__ = ["OLDEST", "read_version"]

OLDEST = (2, 1, 300)
"""Older versions speak another dialect of the stream and of the control protocol."""
PATIENCE = 15.0
"""Seconds after which no answer is expected any more; a CLI that starts from a cold disk takes one."""
ENOUGH = 1000
"""Bytes of output among which a version has to stand."""

_VERSION = re.compile(rb"(\d+)\.(\d+)\.(\d+)")


async def read_version(binary: str, environment: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Return the version of a CLI; None if it does not tell within 15 seconds.

    Cancellation: ends the child, within a second.
    """
    output = b""
    try:
        with trio.move_on_after(PATIENCE):
            async with open_child_process([binary, "--version"], env=environment, grace_period=0) as child:
                while len(output) < ENOUGH and (data := await child.receive_some()):
                    output += data
    except ChildSpawnError:
        return None
    found = _VERSION.search(output)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
