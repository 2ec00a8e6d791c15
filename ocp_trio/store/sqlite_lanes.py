"""Reach one SQLite file from two lanes of threads: writes, committed in groups, and reads, answered in groups.

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
"""Calls that one thread carries out at once: a few milliseconds of work. One by one each would wait for the event loop
twice, which may be busy: of 200 clients at once the last would wait for seconds."""

T = TypeVar("T")
Task: TypeAlias = Callable[[sqlite3.Connection], T]
"""What is to be done on a connection, in a thread."""


@dataclass(eq=False, slots=True)
class _Call:
    """One read or write on its way."""

    task: Task[Any]
    hasty: bool = False
    done: trio.Event = field(default_factory=trio.Event)
    result: Any = None
    error: OcpError | None = None
    failure: Exception | None = None
    given_up: bool = False


class _Lane:
    """A connection that one thread at a time uses, opened anew after every failure."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self.limiter = trio.CapacityLimiter(1)
        self.connection: sqlite3.Connection | None = None
        self.current: _Call | None = None
        self._connect = connect

    async def run(self, work: Callable[["_Lane"], None]) -> None:
        """Do work in a thread; a cancellation leaves the thread behind, and the lane waits for it."""
        await trio.to_thread.run_sync(work, self, abandon_on_cancel=True, limiter=self.limiter)

    def do(self, task: Task[T]) -> T:
        """Run a task in this thread.

        Raises:
            sqlite3.Error: it fails; the next one has a new connection.
            OSError: the file cannot be opened.
        """
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
        # Each call waits, ``timeout`` seconds at most: their number is bounded by the requests at once.
        self._writes, self._to_write = trio.open_memory_channel[_Call](math.inf)
        self._reads, self._to_read = trio.open_memory_channel[_Call](math.inf)

    async def read(self, query: Task[T]) -> T:
        """Run a query, and return what it returns.

        Raises:
            StoreUnavailableError: it fails, or takes longer than the timeout.
        """
        call = _Call(query)
        self._reads.send_nowait(call)
        try:
            result: T = await self._wait(call)
        except StoreUnavailableError:
            if self._reader.current is call and (connection := self._reader.connection) is not None:
                # It may have been closed meanwhile, by the thread that used it.
                with suppress(sqlite3.ProgrammingError):
                    connection.interrupt()
            raise
        return result

    async def write(self, change: Task[T], *, hasty: bool = False) -> T:
        """Make a change, and return what it returns once that is durable.

        Args:
            change: Raises an `OcpError` only before it has changed anything.
            hasty: Whether not to wait until the disk has it.

        Raises:
            StoreUnavailableError: it fails, or takes longer than the timeout.
            OcpError: what ``change`` raised.
        """
        call = _Call(change, hasty)
        self._writes.send_nowait(call)
        result: T = await self._wait(call)
        return result

    async def _wait(self, call: _Call) -> Any:  # noqa: ANN401 (what the call returns)
        with trio.move_on_after(self._timeout, shield=True):
            await call.done.wait()
        if not call.done.is_set():
            call.given_up = True
            raise self._outages.failed("timeout")
        if call.error is not None:
            raise call.error
        return call.result

    async def work(self) -> None:
        """Commit what is written and answer what is read, group by group, until `end`; then close both connections.

        Cancellation: not seen before `end`, because those that are cancelled have their last rows to write.
        """
        with self._working:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._commit_groups)
                nursery.start_soon(self._answer_groups)

    async def _commit_groups(self) -> None:
        async for first in self._to_write:
            await self._commit(_group(first, self._to_write))
        await self._writer.run(_Lane.close)

    async def _answer_groups(self) -> None:
        async for first in self._to_read:
            group = _group(first, self._to_read)
            await self._reader.run(partial(_answer, group=group))
            for call in group:
                if call.failure is not None:
                    call.error = self._outages.failed(type(call.failure).__name__)
                elif not call.given_up:
                    self._outages.answered()
                call.done.set()
        await self._reader.run(_Lane.close)

    async def _commit(self, group: list[_Call]) -> None:
        try:
            await self._writer.run(partial(_commit, group=group))
        except (sqlite3.Error, OSError) as error:
            unavailable = self._outages.failed(type(error).__name__)
            for call in group:
                call.error = StoreUnavailableError(*unavailable.args)
        else:
            self._outages.answered()
        for call in group:
            call.done.set()

    def end(self) -> None:
        """Let both tasks return once all is done and both lanes are free, within the timeout."""
        self._writes.close()
        self._reads.close()
        self._working.deadline = trio.current_time() + self._timeout


def _group(first: _Call, waiting: trio.MemoryReceiveChannel[_Call]) -> list[_Call]:
    """Return all calls that wait, up to a limit."""
    group = [first]
    with suppress(trio.WouldBlock, trio.EndOfChannel):
        while len(group) < MAX_GROUP:
            group.append(waiting.receive_nowait())
    return group


def _answer(lane: _Lane, group: list[_Call]) -> None:
    for call in group:
        if not call.given_up:
            lane.current = call
            try:
                call.result = lane.do(call.task)
            except (sqlite3.Error, OSError) as error:
                call.failure = error
    lane.current = None


def _commit(lane: _Lane, group: list[_Call]) -> None:
    lane.do(partial(_commit_all, group=group))


def _commit_all(connection: sqlite3.Connection, group: list[_Call]) -> None:
    synchronous = "NORMAL" if all(call.hasty for call in group) else "FULL"
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("BEGIN IMMEDIATE")
    for call in group:
        if not call.given_up:
            try:
                call.result = call.task(connection)
            except OcpError as error:
                call.error = error
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
            nursery.start_soon(lanes.work)
            try:
                yield lanes
            finally:
                lanes.end()
