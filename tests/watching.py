"""Wait for what other processes do (change a file, end), without polling them."""

import ctypes
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import trio
from fake_program import Record, records

__all__ = ["Runs", "children", "holdings", "processes_with", "until", "wait_children", "wait_for", "wait_gone"]

T = TypeVar("T")

_LIBC = ctypes.CDLL(None, use_errno=True)
_CHANGED = 0x2 | 0x100  # IN_MODIFY | IN_CREATE of inotify(7)


@contextmanager
def _watch(folder: Path) -> Iterator[Callable[[], Awaitable[None]]]:
    """Yield a function that waits until something has changed in ``folder`` since it last returned."""
    fd = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0 or _LIBC.inotify_add_watch(fd, os.fsencode(folder), _CHANGED) < 0:
        raise OSError(ctypes.get_errno(), "inotify")

    async def change() -> None:
        await trio.lowlevel.wait_readable(fd)
        os.read(fd, 2**16)

    try:
        yield change
    finally:
        os.close(fd)


async def wait_for(folder: Path, look: Callable[[], T]) -> T:
    """Return what ``look`` finds, as soon as it is true; it looks again whenever a file in ``folder`` changes."""
    with _watch(folder) as change:
        while not (found := look()):
            await change()
        return found


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is true that tells nobody when it becomes so: it is looked at every 10 ms."""
    while not await condition():  # noqa: ASYNC110 (another process sets no event)
        await trio.sleep(0.01)


async def wait_gone(*pids: int) -> None:
    """Wait until each process has ended; one that has been reaped has."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)


def processes_with(variable: str, value: str) -> list[int]:
    """Return the processes that were started with ``variable=value`` in their environment."""
    wanted = f"{variable}={value}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = path.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if wanted in environment:
            found.append(int(path.parent.name))
    return found


def children(pid: int) -> list[int]:
    """Return the children of a process, zombies among them."""
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(word) for word in text.split()]


async def wait_children(pid: int, count: int) -> list[int]:
    """Return the children of a process as soon as they are so many: the one that is asked for the login soon ends."""

    async def are_so_many() -> bool:
        return len(children(pid)) == count

    await until(are_so_many)
    return children(pid)


def holdings(pid: int) -> tuple[int, int]:
    """Return how many open files and how many threads a process has."""
    files, threads = (sum(1 for _ in Path(f"/proc/{pid}").glob(f"{name}/*")) for name in ("fd", "task"))
    return files, threads


class Runs:
    """What the runs of a fake CLI record from now on.

    Args:
        folder: That of the program.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = len(records(folder))

    def all(self) -> list[Record]:
        """Return those that have begun so far."""
        return records(self._folder)[self._before :]

    async def begun(self, count: int = 1, *, having: str = "queries") -> list[Record]:
        """Return the children as soon as ``count`` of them have recorded something: by default their question."""

        def look() -> list[Record]:
            found = [record for record in self.all() if getattr(record, having)]
            return found if len(found) >= count else []

        return await wait_for(self._folder / "records", look)
