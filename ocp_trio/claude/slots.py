"""The right to run a child: a bounded number at once, a bounded queue in order of arrival."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ocp_trio.errors import QueueFullError

__all__ = ["Slot", "Slots"]


class Slot:
    """One right, held until `release` or the end of its block, whichever comes first.

    Attributes:
        waited: Seconds until it was had.
    """

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self.waited = 0.0
        self._limiter: trio.CapacityLimiter | None = limiter

    def release(self) -> None:
        """Give it back; doing so again changes nothing."""
        limiter, self._limiter = self._limiter, None
        if limiter is not None:
            limiter.release_on_behalf_of(self)


class Slots:
    """All slots of a backend.

    Args:
        max_concurrent: Children that may run at once.
        max_queue: Requests that may wait for a slot.
        retry_after: Seconds after which a refused client may try again.
    """

    def __init__(self, max_concurrent: int, max_queue: int, retry_after: float) -> None:
        self._limiter = trio.CapacityLimiter(max_concurrent)
        self.max_queue = max_queue
        self.retry_after = retry_after
        self.rejections = 0

    def resize(self, max_concurrent: int, max_queue: int, retry_after: float) -> None:
        """Change the numbers that it was made with: for requests that wait at once, never for children that run."""
        self._limiter.total_tokens = max_concurrent
        self.max_queue = max_queue
        self.retry_after = retry_after

    @property
    def max_concurrent(self) -> int:
        """Children that may run at once."""
        return int(self._limiter.total_tokens)

    @property
    def in_flight(self) -> int:
        """Slots that are taken."""
        return self._limiter.statistics().borrowed_tokens

    @property
    def queued(self) -> int:
        """Requests that wait."""
        return self._limiter.statistics().tasks_waiting

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Slot]:
        """Hold a slot for the length of a block, after waiting for it in order.

        Cancellation: a waiter leaves the queue at once.

        Raises:
            QueueFullError: at once, when nothing is free and the queue is full.
        """
        if self._limiter.available_tokens < 1 and self.queued >= self.max_queue:
            self.rejections += 1
            raise QueueFullError(
                f"all {self.max_concurrent} slots are taken and {self.queued} requests wait",
                retry_after=self.retry_after,
            )
        slot = Slot(self._limiter)
        arrived, must_wait = trio.current_time(), self._limiter.available_tokens < 1
        await self._limiter.acquire_on_behalf_of(slot)
        if must_wait:
            slot.waited = trio.current_time() - arrived
        try:
            yield slot
        finally:
            slot.release()
