"""Start a process with its three pipes, or leave nothing behind."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ocp_trio.errors import ChildSpawnError

__all__ = ["SETPRIV", "Spawned", "spawn"]

SETPRIV = shutil.which("setpriv", path="/usr/bin:/bin:/usr/local/bin")
"""The tool that makes the kernel kill the child when the thread that spawned it dies; None where it is missing."""


class Spawned(NamedTuple):
    """A running process, and the file descriptors that are ours."""

    process: subprocess.Popen[bytes]
    pidfd: int
    stdin: int
    stdout: int
    stderr: int


def _hold(process: subprocess.Popen[bytes]) -> int:
    """Return a file descriptor of a process that has just been started; without one, it is not left running."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        process.kill()
        process.wait()
        raise


def spawn(command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> Spawned:
    """Start a process in a group of its own, from this thread: its parent-death signal is bound to the thread.

    Raises:
        ChildSpawnError: it could not be started; nothing is left of it.
    """
    if not (Path(command[0]).is_file() and os.access(command[0], os.X_OK)):
        raise ChildSpawnError("the program could not be started: it is missing or not executable")
    prefix = [SETPRIV, "--pdeathsig", "KILL", "--"] if SETPRIV else []
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for end in (1, 0, 0):
            pipe = os.pipe()
            ours.append(pipe[end])
            theirs.append(pipe[1 - end])
        process = subprocess.Popen(
            [*prefix, *command],
            stdin=theirs[0],
            stdout=theirs[1],
            stderr=theirs[2],
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        ours.insert(0, _hold(process))
    except OSError as error:
        for fd in ours:
            os.close(fd)
        raise ChildSpawnError(f"the program could not be started: {os.strerror(error.errno or 0)}") from error
    finally:
        for fd in theirs:
            os.close(fd)
    return Spawned(process, *ours)
