"""Find and signal the processes that a child has started, whatever session they run in."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

__all__ = ["Family", "of"]


class Family:
    """Processes held by file descriptors, so that a reused process id is never signalled."""

    def __init__(self, pidfds: list[int]) -> None:
        self._pidfds = pidfds

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all that are left."""
        for pidfd in self._pidfds:
            try:
                signal.pidfd_send_signal(pidfd, number)
            except ProcessLookupError:
                continue

    async def wait(self) -> None:
        """Wait until all have ended."""
        for pidfd in self._pidfds:
            await trio.lowlevel.wait_readable(pidfd)


def _children(pid: int) -> list[int]:
    """Return the processes that ``pid`` has started, from Linux' ``/proc`` (``CONFIG_PROC_CHILDREN``)."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []
    found: list[int] = []
    for thread in threads:
        try:
            # Asking every process for its parent instead takes a hundred times as long.
            found += map(int, (thread / "children").read_bytes().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@contextmanager
def of(pid: int) -> Iterator[Family]:
    """Hold all descendants of ``pid``, as they are now, for the length of a block."""
    found, todo = [], [pid]
    while todo:
        known = _children(todo.pop())
        found += known
        todo += known
    pidfds: list[int] = []
    try:
        for child in found:
            try:
                pidfds.append(os.pidfd_open(child))
            except ProcessLookupError:
                continue
        yield Family(pidfds)
    finally:
        for pidfd in pidfds:
            os.close(pidfd)
