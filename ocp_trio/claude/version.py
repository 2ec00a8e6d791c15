"""Ask the CLI for its version, or for anything else that it tells at once."""

import re
from collections.abc import Mapping, Sequence

import trio

from ocp_trio.errors import ChildSpawnError
from ocp_trio.streaming import open_child_process

__all__ = ["OLDEST", "output_of", "read_version"]

OLDEST = (2, 1, 300)
"""Older versions speak another dialect of the stream and of the control protocol."""
PATIENCE = 15.0
"""Seconds after which no answer is expected any more; a CLI that starts from a cold disk takes one."""
ENOUGH = 2**16
"""Bytes of output that are read."""
GRACE_PERIOD = 1.0
"""Seconds between SIGTERM and SIGKILL: it may be writing a file of its own."""

_VERSION = re.compile(rb"(\d+)\.(\d+)\.(\d+)")


async def output_of(
    command: Sequence[str], environment: Mapping[str, str], *, within: float, cwd: str | None = None
) -> bytes | None:
    """Return what a command prints, as far as it is read; None if it does not start, or end ``within`` so long.

    Cancellation: ends the child, within two seconds.
    """
    output = b""
    try:
        with trio.move_on_after(within):
            async with open_child_process(command, env=environment, cwd=cwd, grace_period=GRACE_PERIOD) as child:
                await child.stdin.aclose()
                while len(output) < ENOUGH and (data := await child.receive_some()):
                    output += data
                if len(output) < ENOUGH:
                    await child.exited.wait()
                return output
    except ChildSpawnError:
        pass
    return None


async def read_version(binary: str, environment: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Return the version of a CLI; None if it does not tell within 15 seconds.

    Cancellation: ends the child, within two seconds.
    """
    output = await output_of([binary, "--version"], environment, within=PATIENCE)
    found = _VERSION.search(output or b"")
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
