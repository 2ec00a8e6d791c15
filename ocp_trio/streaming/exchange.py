"""One exchange: a reader that owns the upstream, a heartbeat, and a writer that owns the response.

::

    reader      source ──▶ send channel (capacity 0)
    heartbeat   with move_on_after(interval): await rearmed.receive()     else: offer a beat
    writer      receive channel → write; after each real write: re-arm

Exactly one last item reaches the writer: the source's own, or one made of the error that ended it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from math import inf
from typing import Generic, TypeVar

import trio

from ocp_trio.errors import OcpError, UpstreamIncompleteError
from ocp_trio.streaming.groups import unwrap_lone_error
from ocp_trio.streaming.heartbeat import Rearm, open_rearm, run_heartbeat

__all__ = ["run_exchange"]

T = TypeVar("T")


class _Exchange(Generic[T]):
    """The channel between the tasks of one exchange, and what they do with it."""

    def __init__(self, is_last: Callable[[T], bool], failed: Callable[[OcpError], T]) -> None:
        self.is_last = is_last
        self.failed = failed
        # Capacity 0: back-pressure is end to end, and a beat is offered only to a writer that is idle.
        self.send, self.receive = trio.open_memory_channel[T](0)
        self.reading = trio.CancelScope()
        self.cutting = trio.CancelScope()
        self.settled = False

    def settle(self) -> bool:
        """Claim to know the last item; return whether nobody did before."""
        unknown, self.settled = not self.settled, True
        return unknown

    async def deliver(self, item: T) -> None:
        """Hand an item to the writer, unless it has had its last one."""
        try:
            await self.send.send(item)
        except trio.BrokenResourceError:
            return

    async def read(self, source: AbstractAsyncContextManager[AsyncIterator[T]]) -> None:
        """Pass on what the source yields; tell the last item while the source's block is being left."""
        with self.reading:
            async with trio.open_nursery() as telling:
                try:
                    async with source as items:
                        last = await self._pass_on(items)
                        if self.settle():
                            self.cutting.cancel()
                            telling.start_soon(self.deliver, last)
                except OcpError as error:
                    if self.settle():
                        self.cutting.cancel()
                        await self.deliver(self.failed(error))

    async def _pass_on(self, items: AsyncIterator[T]) -> T:
        """Deliver all items but the last, and return that, or one that says that it is missing."""
        async for item in items:
            if self.is_last(item):
                return item
            await self.deliver(item)
        return self.failed(UpstreamIncompleteError("upstream ended before its answer did"))

    async def watch(self, cut: Callable[[], Awaitable[OcpError]]) -> None:
        """End the source early, once ``cut`` says why, unless it has come to its end before."""
        with self.cutting:
            error = await cut()
            if self.settle():
                self.reading.cancel()
                await self.deliver(self.failed(error))

    async def write(self, write: Callable[[T], Awaitable[bool]], rearm: Rearm | None) -> None:
        """Write items up to the last one."""
        with self.receive:
            async for item in self.receive:
                if await write(item) and rearm:
                    rearm()
                if self.is_last(item):
                    break
        if rearm:
            rearm.close()


async def run_exchange(
    source: AbstractAsyncContextManager[AsyncIterator[T]],
    write: Callable[[T], Awaitable[bool]],
    *,
    is_last: Callable[[T], bool],
    failed: Callable[[OcpError], T],
    beat: T,
    heartbeat_interval: float = inf,
    cut: Callable[[], Awaitable[OcpError]] = trio.sleep_forever,
) -> None:
    """Write what ``source`` yields until its last item, and beat while it is silent.

    The last item is handed to the writer while the source's block is being left, so that neither waits for the other:
    a client is told at once, and a client that does not read keeps nothing alive.

    Args:
        source: Entered, iterated and left in the reader's task.
        write: Called in this task, with one item at a time; returns whether anything was really written.
        is_last: Whether an item ends the exchange.
        failed: Makes the last item out of an error.
        beat: What is written after each silent interval.
        heartbeat_interval: Seconds of silence before a beat; 0 and `math.inf` turn it off.
        cut: Returns when the exchange has to end early, and why (a deadline, a shutdown).

    Cancellation: ends the source at once, within the bound that its block states.
    """
    exchange = _Exchange(is_last, failed)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exchange.read, source)
            nursery.start_soon(exchange.watch, cut)
            rearm = None
            if heartbeat_interval not in (0, inf):
                rearm, rearmed = open_rearm()
                nursery.start_soon(run_heartbeat, heartbeat_interval, rearmed, lambda: exchange.send.send_nowait(beat))
            await exchange.write(write, rearm)
