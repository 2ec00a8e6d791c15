"""Run a child process for the length of a block: nothing of it outlives the block."""

import fcntl
import os
import signal
import struct
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Protocol

import trio

from ocp_trio.streaming import descendants
from ocp_trio.streaming.groups import unwrap_lone_error
from ocp_trio.streaming.spawn import SETPRIV, Spawned, spawn
from ocp_trio.streaming.tally import ProcessTally

__all__ = ["SETPRIV", "Child", "ChildProcess", "open_child_process"]

READ_SIZE = 2**16
"""Bytes asked for at once: what a pipe holds."""
STDERR_TAIL = 8 * 2**10
"""Bytes of the newest error output that are kept."""
DRAIN = 0.1
"""Seconds that more output is waited for once the child has exited and something else still holds its pipe."""
REAP = 1.0
"""Seconds that the kernel may take to end a killed process."""


class Child(Protocol):
    """What its user sees of a child, be it a `ChildProcess` or a double of `ocp_trio.testing`.

    Attributes:
        pid: Its process id, which is also that of its process group.
        stdin: Where its input goes; close it to say that nothing follows.
        exited: Set once it has been reaped.
        stderr_tail: The newest of its error output, at most 8 KiB. Never for a client's eyes.
    """

    pid: int
    stdin: trio.abc.SendStream
    exited: trio.Event
    stderr_tail: bytes

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        ...

    async def receive_some(self) -> bytes:
        """Return the next piece of its output, of at most 64 KiB; ``b""`` at the end.

        The end is the pipe's, or comes a moment (0.1 s of waiting) after the child's exit where a grandchild holds the
        pipe open. Nothing that the child itself has written is lost.

        Cancellation: at once; nothing is lost.
        """
        ...


class ChildProcess(Child):
    """A running child; made by `open_child_process`."""

    def __init__(self, spawned: Spawned, tally: ProcessTally) -> None:
        self.pid = spawned.process.pid
        self.stdin = trio.lowlevel.FdStream(spawned.stdin)
        self.exited = trio.Event()
        self.stderr_tail = b""
        self._process = spawned.process
        self._tally = tally
        tally.alive += 1
        self._pidfd = spawned.pidfd
        self._stdout = trio.lowlevel.FdStream(spawned.stdout)
        self._stderr = trio.lowlevel.FdStream(spawned.stderr)
        self._group_left = True
        self._owed = 0
        self._drain_left = DRAIN
        self._reading_since = -inf

    @property
    def returncode(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.returncode

    async def receive_some(self) -> bytes:
        """Return the next piece of its output."""
        # While the child runs nothing bounds a read, which then needs no scope: its exit wakes it.
        while not self.exited.is_set():
            try:
                await trio.lowlevel.wait_readable(self._stdout.fileno())
                data = os.read(self._stdout.fileno(), READ_SIZE)
            except BlockingIOError:
                continue
            except trio.ClosedResourceError:
                if not self.exited.is_set():
                    raise
            else:
                # Set since, in the same pass of the scheduler: these bytes were still counted as owed.
                if self.exited.is_set():
                    self._owed -= len(data)
                return data
        self._reading_since = trio.current_time()
        with trio.CancelScope(deadline=self._read_deadline()):
            data = await self._stdout.receive_some(READ_SIZE)
            self._owed -= len(data)
            self._drain_left -= trio.current_time() - self._reading_since
            return data
        return b""

    def _read_deadline(self) -> float:
        """Return when to take the output as ended: never before all that the child itself has written is read."""
        return self._reading_since + self._drain_left if self.exited.is_set() and self._owed <= 0 else inf

    async def watch_exit(self, scope: trio.CancelScope) -> None:
        """Reap the child when it exits, or stop waiting when ``scope`` is cancelled."""
        try:
            with scope:
                await trio.lowlevel.wait_readable(self._pidfd)
        finally:
            os.close(self._pidfd)
        if scope.cancelled_caught or self._process.poll() is None:
            return
        # Its id may be given to another process from now on, unless there is somebody left in its group.
        self._group_left = _signal_group(self.pid, 0)
        self._owed = _readable(self._stdout.fileno())
        self._tally.alive -= 1
        self.exited.set()
        trio.lowlevel.notify_closing(self._stdout.fileno())

    async def drain_stderr(self, scope: trio.CancelScope) -> None:
        """Read error output until ``scope`` is cancelled, so that the child never blocks on it."""
        try:
            with scope:
                async for data in self._stderr:
                    self.stderr_tail = (self.stderr_tail + data)[-STDERR_TAIL:]
        finally:
            self._stderr.close()

    async def end(self, grace_period: float) -> None:
        """Terminate the group, then kill what is left of it and of its descendants, and reap the child."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + grace_period + REAP):
            if self.exited.is_set():
                self._kill_group()
                return
            # Looked up while the child still runs: afterwards nobody knows whose children they were.
            with descendants.of(self.pid) as family:
                with trio.move_on_after(grace_period):
                    await self._terminate(family)
                family.signal(signal.SIGKILL)
                self._kill_group()
                await self.exited.wait()
                await family.wait()

    async def _terminate(self, family: descendants.Family) -> None:
        self._signal_group(signal.SIGTERM)
        await self.exited.wait()
        # Tools run in sessions of their own: the group's signal has not reached them.
        family.signal(signal.SIGTERM)
        await family.wait()

    def _kill_group(self) -> None:
        if self._group_left:
            self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: int) -> None:
        if _signal_group(self.pid, number):
            self._tally.count_signal(number)

    def close(self) -> None:
        """Close the pipes that its user has."""
        self.stdin.close()
        self._stdout.close()


def _signal_group(pgid: int, number: int) -> bool:
    """Send a signal to a process group; 0 sends none. Return whether there is anybody in it."""
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Somebody who has become another user.
        return True
    return True


def _readable(fd: int) -> int:
    """Return how many bytes a pipe holds."""
    return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0])


@asynccontextmanager
async def open_child_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    grace_period: float = 5.0,
    tally: ProcessTally | None = None,
) -> AsyncIterator[ChildProcess]:
    """Run ``command`` in a process group of its own for the length of a block.

    On Linux the child is also killed by the kernel when the calling thread dies. Call it from the main thread.

    Args:
        command: Path of the program and its arguments; never a shell string.
        env: The whole environment of the child.
        cwd: Its working directory; None for the caller's.
        grace_period: Seconds between SIGTERM and SIGKILL; 0 kills at once.
        tally: Where it is counted.

    Cancellation: leaving the block, for whatever cause, terminates the group, kills what is left of it and of its
    descendants after ``grace_period`` and reaps the child, shielded, within ``grace_period + 1`` seconds.

    Raises:
        ChildSpawnError: the program could not be started.
    """
    child = ChildProcess(spawn(command, env, cwd), tally or ProcessTally())
    # Shielded: the caller's cancellation must not stop the reaping that it causes. They end below, with the block.
    exit_scope, stderr_scope = trio.CancelScope(shield=True), trio.CancelScope(shield=True)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.watch_exit, exit_scope)
            nursery.start_soon(child.drain_stderr, stderr_scope)
            try:
                yield child
            finally:
                await child.end(grace_period)
                exit_scope.cancel()
                stderr_scope.cancel()
                child.close()
