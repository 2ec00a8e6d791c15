"""What holds for every test: it leaves no process, no zombie and no thread behind."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test says nothing of time: neither may its examples, on a machine that is busy.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

CACHED = "Trio thread "
"""Trio keeps its worker threads for ten seconds, in case they are needed again."""


def _children() -> set[int]:
    """Return the children of this process, zombies among them."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        # A thread may end between the two looks.
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (thread / "children").read_bytes().split()))
    return found


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith(CACHED)}


def _end(pid: int) -> str:
    """End a child, so that later tests do not suffer from it; return its id, name and state (Z is a zombie)."""
    before, _, after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return f"{before}) {after.split()[0]}"


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Fail a test after which there are children or threads that were not there before it."""
    children, threads = _children(), _threads()
    yield
    left = [_end(pid) for pid in _children() - children]
    assert not left, f"the test left processes behind: {', '.join(left)}"
    running = [thread.name for thread in _threads() - threads]
    assert not running, f"the test left threads behind: {', '.join(running)}"
