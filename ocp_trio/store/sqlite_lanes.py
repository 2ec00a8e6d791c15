"""Reach one SQLite file from two lanes of threads: writes, committed in groups, and reads beside them.

A write has been synced to the disk before its call returns, so that neither a killed process nor a machine that loses
its power takes back what a client has been told. A group shares one sync: all that came while the last one ran. A hasty
write does not wait for a sync: a killed process does not take it back, and the next sync covers it.
"""

import math
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import trio

from ocp_trio.errors import OcpError, StoreUnavailableError
from ocp_trio.store.outages import Outages
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["SqliteLanes", "Task", "open_lanes"]

MAX_GROUP: Final = 256
"""Writes that are committed at once: a few milliseconds of work."""

T = TypeVar("T")
Task: TypeAlias = Callable[[sqlite3.Connection], T]
"""What is to be done on a connection, in a thread."""


@dataclass(eq=False, slots=True)
class _Write:
    """One write on its way to the disk."""

    change: Task[Any]
    hasty: bool
    done: trio.Event = field(default_factory=trio.Event)
    result: Any = None
    error: OcpError | None = None
    given_up: bool = False


class _Lane:
    """A connection that one thread at a time uses, opened anew after every failure."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.limiter = trio.CapacityLimiter(1)
        self.connection: sqlite3.Connection | None = None
        self._connect = connect

    async def run(self, task: Task[T]) -> T:
        """Run a task in a thread; a cancellation leaves the thread behind, and the lane waits for it."""
        return await trio.to_thread.run_sync(self._run, task, abandon_on_cancel=True, limiter=self.limiter)

    def _run(self, task: Task[T]) -> T:
        if self.connection is None:
            self.connection = self._connect()
        try:
            return task(self.connection)
        except sqlite3.Error:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; what it had not committed is rolled back."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


class SqliteLanes:
    """The two lanes; made by `open_lanes`."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], timeout: float, outages: Outages) -> None:
        self._timeout = timeout
        self._outages = outages
        self._reader = _Lane(connect)
        self._writer = _Lane(connect)
        self._working = trio.CancelScope(shield=True)
        # Each writer is a call that waits: their number is bounded by the requests at once, and each waits for
        # ``timeout`` seconds at most.
        self._send, self._receive = trio.open_memory_channel[_Write](math.inf)

    async def read(self, query: Task[T]) -> T:
        """Run a query, and return what it returns.

        Raises:
            StoreUnavailableError: it fails, or takes longer than the timeout.
        """
        with trio.move_on_after(self._timeout, shield=True):
            try:
                result = await self._reader.run(query)
            except (sqlite3.Error, OSError) as error:
                raise self._outages.failed(type(error).__name__) from error
            self._outages.answered()
            return result
        if (connection := self._reader.connection) is not None:
            # It may have been closed meanwhile, by the thread that used it.
            with suppress(sqlite3.ProgrammingError):
                connection.interrupt()
        raise self._outages.failed("timeout")

    async def write(self, change: Task[T], *, hasty: bool = False) -> T:
        """Make a change, and return what it returns once that is durable.

        Args:
            change: Raises an `OcpError` only before it has changed anything.
            hasty: Whether not to wait until the disk has it.

        Raises:
            StoreUnavailableError: it fails, or takes longer than the timeout.
            OcpError: what ``change`` raised.
        """
        write = _Write(change, hasty)
        self._send.send_nowait(write)
        with trio.move_on_after(self._timeout, shield=True):
            await write.done.wait()
        if not write.done.is_set():
            write.given_up = True
            raise self._outages.failed("timeout")
        if write.error is not None:
            raise write.error
        result: T = write.result
        return result

    async def commit_groups(self) -> None:
        """Commit what is written, group by group, until `end`; then close both connections.

        Cancellation: not seen before `end`, because those that are cancelled have their last rows to write.
        """
        with self._working:
            async for first in self._receive:
                await self._commit(self._group(first))
            for lane in (self._writer, self._reader):
                await trio.to_thread.run_sync(lane.close, abandon_on_cancel=True, limiter=lane.limiter)

    def _group(self, first: _Write) -> list[_Write]:
        """Return all writes that wait, up to a limit."""
        group = [first]
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while len(group) < MAX_GROUP:
                group.append(self._receive.receive_nowait())
        return group

    async def _commit(self, group: list[_Write]) -> None:
        try:
            await self._writer.run(partial(_commit, group=group))
        except (sqlite3.Error, OSError) as error:
            unavailable = self._outages.failed(type(error).__name__)
            for write in group:
                write.error = StoreUnavailableError(*unavailable.args)
        else:
            self._outages.answered()
        for write in group:
            write.done.set()

    def end(self) -> None:
        """Let `commit_groups` return once all is written and both lanes are free, within the timeout."""
        self._send.close()
        self._working.deadline = trio.current_time() + self._timeout


def _commit(connection: sqlite3.Connection, group: list[_Write]) -> None:
    synchronous = "NORMAL" if all(write.hasty for write in group) else "FULL"
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("BEGIN IMMEDIATE")
    for write in group:
        if not write.given_up:
            try:
                write.result = write.change(connection)
            except OcpError as error:
                write.error = error
    connection.execute("COMMIT")


@asynccontextmanager
async def open_lanes(
    connect: Callable[[], sqlite3.Connection], *, timeout: float, outages: Outages
) -> AsyncIterator[SqliteLanes]:
    """Reach a file for the length of a block.

    Args:
        connect: Opens a connection, in a thread; it commits nothing by itself.
        timeout: Seconds that a call may take.
        outages: Told when calls fail and when they succeed again.

    Cancellation: at the end of the block what was written is committed and the connections are closed, shielded, within
    ``timeout`` seconds.
    """
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            lanes = SqliteLanes(connect, timeout, outages)
            nursery.start_soon(lanes.commit_groups)
            try:
                yield lanes
            finally:
                lanes.end()
