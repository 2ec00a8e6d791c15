"""Shell programs as children."""

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from ocp_trio.streaming import Child, ChildProcess, open_child_process

__all__ = [
    "ENV",
    "LIMIT",
    "OBEDIENT",
    "STUBBORN",
    "alive",
    "open_python",
    "open_shell",
    "read_all",
    "read_line",
    "shell",
]

LIMIT = 20
"""Seconds, for any test that talks to a process."""
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
OBEDIENT = "echo ready; exec sleep 1000"
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 1000; done"


def shell(script: str) -> list[str]:
    """Return the command that runs a script."""
    return ["/bin/sh", "-c", script]


def open_shell(script: str, **options: Any) -> AbstractAsyncContextManager[ChildProcess]:
    """Run a shell script for the length of a block; five seconds of grace."""
    return open_child_process(shell(script), **{"env": ENV, **options})


def open_python(script: str, **options: Any) -> AbstractAsyncContextManager[ChildProcess]:
    """Run a Python script for the length of a block."""
    return open_child_process([sys.executable, "-c", script], **{"env": ENV, **options})


async def read_line(child: Child) -> str:
    """Return the next line of output, which is all that there is."""
    line = b""
    while not line.endswith(b"\n"):
        line += await child.receive_some()
    return line.decode().rstrip("\n")


async def read_all(child: Child) -> bytes:
    """Return all that is left of the output."""
    output = b""
    while data := await child.receive_some():
        output += data
    return output


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
