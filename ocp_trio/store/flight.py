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
    """Where one reader of a flight stands; made by `Flight.joined`."""

    def __init__(self, flight: "Flight", position: int) -> None:
        self.position = position
        self._flight = flight

    async def __anext__(self) -> bytes:
        """Return the next batch, as soon as there is one.

        Cancellation: at once; nothing is skipped.

        Raises:
            FlightLostError: after all that was published, where the flight has not been finished.
        """
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
        max_bytes: Beyond it nobody may join, what all have read is dropped, and the publisher waits for the slowest.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.joinable = True
        self.published = 0
        self.finished = False
        self.followers = 0
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
            counts: Whether this reader is a reason to go on.
        """
        cursor = Cursor(self, self._dropped)
        self._cursors.add(cursor)
        self.followers += counts
        try:
            yield cursor
        finally:
            self._cursors.remove(cursor)
            self.followers -= counts
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
        await self.wait_until(lambda: self._size <= self._max_bytes)

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

    def trim(self) -> None:
        """Beyond the limit, drop what all have read."""
        if self.joinable or self.ended or self._size <= self._max_bytes:
            return
        least = min((cursor.position for cursor in self._cursors), default=self.published)
        while self._dropped < least:
            self._size -= len(self._batches.popleft()) + OVERHEAD
            self._dropped += 1
        self._wake()

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

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
