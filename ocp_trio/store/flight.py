"""Hand one run of an upstream to all who want it, each from its beginning, within one process."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from ocp_trio.errors import UpstreamIncompleteError

__all__ = ["MAX_BYTES", "Cursor", "Flight", "FlightLostError"]

MAX_BYTES: Final = 2 * 2**20
"""Bytes of a flight that are kept for those who join later: several times the longest answer of a model."""
OVERHEAD: Final = 48
"""Bytes that Python adds to each batch."""


class FlightLostError(UpstreamIncompleteError):
    """Whoever produced a shared answer is gone, and nobody can continue it."""


class Cursor(AsyncIterator[bytes]):
    """Where one reader of a flight stands; made by `Flight.joined`.

    Attributes:
        counts: Whether it is a reason to go on.
        left_behind: Whether it was so slow that what it has not read yet has been dropped.
    """

    def __init__(self, flight: "Flight", position: int, *, counts: bool) -> None:
        self.position = position
        self.counts = counts
        self.left_behind = False
        self._flight = flight

    async def __anext__(self) -> bytes:
        """Return the next batch, as soon as there is one.

        Cancellation: at once; nothing is skipped.

        Raises:
            FlightLostError: after all that was published, where the flight has not been finished; or before, where
                this reader has been left behind.
        """
        if self.left_behind:
            raise FlightLostError("the client reads a shared answer far more slowly than others do")
        await self._flight.wait_beyond(self.position)
        batch = self._flight.read(self.position)
        if batch is None:
            raise StopAsyncIteration
        self.position += 1
        self._flight.trim()
        return batch


class Flight:
    """The batches of one run, and those who read them.

    Args:
        max_bytes: Beyond it nobody may join, what all have read is dropped, and the publisher waits for the fastest
            reader; those that are farther behind that one are left behind.

    Attributes:
        landed: Whether its producer is gone, and all that it had started with it.
        adopted: Whether it goes on for followers elsewhere, though nobody here follows.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.joinable = True
        self.published = 0
        self.finished = False
        self.followers = 0
        self.landed = False
        self.adopted = False
        self._max_bytes = max_bytes
        self._error: FlightLostError | None = None
        self._batches: deque[bytes] = deque()
        self._dropped = 0
        self._size = 0
        self._cursors: set[Cursor] = set()
        self._changed = trio.Event()

    @property
    def ended(self) -> bool:
        """Whether nothing more will be published."""
        return self.finished or self._error is not None

    @contextmanager
    def joined(self, *, counts: bool = True) -> Iterator[Cursor]:
        """Read from the beginning for the length of a block.

        Args:
            counts: Whether this reader is a reason to go on; one that is not is never left behind.
        """
        cursor = Cursor(self, self._dropped, counts=counts)
        self._cursors.add(cursor)
        self.followers += counts
        try:
            yield cursor
        finally:
            self._cursors.discard(cursor)
            self.followers -= cursor.counts
            self.trim()
            self._wake()

    async def publish(self, batch: bytes) -> None:
        """Hand a batch to all readers.

        Cancellation: at once; the batch has been published nevertheless.
        """
        self._batches.append(batch)
        self.published += 1
        self._size += len(batch) + OVERHEAD
        self.joinable = self.joinable and self._size <= self._max_bytes
        self._wake()
        self.trim()
        await trio.lowlevel.checkpoint()
        await self.wait_until(self._has_room)

    def finish(self) -> None:
        """Say that all has been published."""
        self.finished = True
        self.close()

    def lose(self, error: FlightLostError) -> None:
        """Say that the rest will never come; after the end this changes nothing."""
        if not self.ended:
            self._error = error
            self.close()

    def read(self, position: int) -> bytes | None:
        """Return the batch at ``position``; None at the end of a finished flight."""
        if position < self.published:
            return self._batches[position - self._dropped]
        if self._error is not None:
            # Each reader gets an error of its own: a shared one would collect all their tracebacks.
            raise FlightLostError(*self._error.args)
        return None

    def read_all(self, cursor: Cursor) -> list[bytes]:
        """Return all batches from a cursor on, and move it behind them."""
        found = [self._batches[index] for index in range(cursor.position - self._dropped, len(self._batches))]
        cursor.position = self.published
        self.trim()
        return found

    def has_all(self, cursor: Cursor) -> bool:
        """Whether a reader has read all that was published."""
        return cursor.position == self.published

    def trim(self) -> None:
        """Beyond the limit, drop what all have read."""
        if self.joinable or self.ended or self._size <= self._max_bytes:
            return
        least = min((cursor.position for cursor in self._cursors), default=self.published)
        while self._dropped < least:
            self._size -= len(self._batches.popleft()) + OVERHEAD
            self._dropped += 1
        self._wake()

    def _has_room(self) -> bool:
        """Whether more may be published; whoever holds that up for a reader that has read all is left behind."""
        if self._size > self._max_bytes and any(each.counts and self.has_all(each) for each in self._cursors):
            self._leave_behind()
        return self._size <= self._max_bytes

    def _leave_behind(self) -> None:
        """Drop what only the slowest have not read, until there is room."""
        while self._size > self._max_bytes:
            slowest = min(self._cursors, key=lambda each: each.position)
            if not slowest.counts:
                return
            self._cursors.remove(slowest)
            self.followers -= 1
            slowest.counts, slowest.left_behind = False, True
            self.trim()

    async def wait_beyond(self, position: int) -> None:
        """Wait until there is something at ``position``, or nothing more will come."""
        await trio.lowlevel.checkpoint_if_cancelled()
        await self.wait_until(lambda: position < self.published or self.ended)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this flight holds."""
        while not condition():
            await self._changed.wait()

    def close(self) -> None:
        """Let nobody join any more."""
        self.joinable = False
        self._wake()

    def adopt(self, *, adopted: bool) -> None:
        """Say whether it goes on for followers elsewhere."""
        self.adopted = adopted
        self._wake()

    def land(self, error: FlightLostError) -> None:
        """Say that the producer is gone; unless it has finished before, the rest will never come."""
        self.lose(error)
        self.landed = True
        self._wake()

    async def wait_left(self) -> None:
        """Wait until nobody here has to wait for it: it has landed, or somebody follows it, here or elsewhere."""
        await self.wait_until(lambda: self.landed or self.followers > 0 or self.adopted)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
