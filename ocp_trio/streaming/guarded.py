"""Stream events through a stall guard, read ahead of their consumer.

Exactly one end is told: the terminal event, a clean end after the answer's finish, or one error. Upstream has been
cancelled and cleaned up before a stall is told.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from math import inf
from typing import TypeAlias, TypeVar

import trio

from ocp_trio.errors import OcpError, UpstreamIncompleteError
from ocp_trio.streaming.groups import lone_error, unwrap_lone_error
from ocp_trio.streaming.stall import StallGuard
from ocp_trio.streaming.windows import Sighting

__all__ = ["GuardedChannel", "stream_guarded"]

READ_AHEAD = 16
"""Items that may wait for the consumer: where each is a batch read at once, of at most 64 KiB, 1 MiB."""
WIRE_ERRORS = (OSError, trio.BrokenResourceError)
"""What a wire fails with, beside the errors of our own tree."""

T = TypeVar("T")
Source: TypeAlias = AbstractAsyncContextManager[AsyncIterable[T]]


class GuardedChannel(trio.abc.ReceiveChannel[T]):
    """The consumer's end of a guarded stream; made by `stream_guarded`."""

    def __init__(
        self, guard: StallGuard, describe: Callable[[T], Sighting | None], size: Callable[[T], int], read_ahead: int
    ) -> None:
        self._guard = guard
        self._describe = describe
        self._size = size
        self._read_ahead = read_ahead
        # Bounded by `_held`, in the caller's unit.
        self._send, self._receive = trio.open_memory_channel[tuple[T, int]](inf)
        self._held = 0
        self._room = trio.lowlevel.ParkingLot()
        self._upstream = trio.CancelScope()
        self._finished = self._ended = False
        self._error: BaseException | None = None

    async def receive(self) -> T:
        """Return the next item.

        Cancellation: at once; nothing is lost.

        Raises:
            trio.EndOfChannel: the stream has ended well, or its one error has been told.
            UpstreamStalledError: a limit passed.
            UpstreamIncompleteError: upstream ended without a terminal event or a finish.
        """
        try:
            item, size = await self._receive.receive()
        except trio.EndOfChannel:
            error, self._error = self._error, None
            if error is None:
                raise
            raise error from error.__cause__
        self._held -= size
        self._room.unpark_all()
        return item

    def offer(self, item: T) -> None:
        """Hand an item that is not upstream's to a consumer that waits.

        Raises:
            trio.WouldBlock: it does not wait.
        """
        if not self._receive.statistics().tasks_waiting_receive:
            raise trio.WouldBlock
        self._send.send_nowait((item, 0))

    async def aclose(self) -> None:
        """Take nothing more: upstream is cancelled, unless it has come to its end."""
        self.leave()
        await trio.lowlevel.checkpoint()

    def leave(self) -> None:
        """Do as `aclose`, without a checkpoint."""
        self._receive.close()
        if not self._guard.settled:
            self._upstream.cancel()

    async def pump(self, source: Source[T], failures: tuple[type[Exception], ...]) -> None:
        """Read ahead until the stream ends, and leave the source."""
        error: BaseException | None = None
        try:
            with self._upstream:
                await self._read(source)
        except* failures as group:
            error = lone_error(group)
        if self._guard.verdict is not None:
            self._end(self._guard.verdict)
        elif error is not None and not self._ended:
            self._end(error)
        if error not in (None, self._error):
            self._guard.late(type(error).__name__)

    async def _read(self, source: Source[T]) -> None:
        async with AsyncExitStack() as stack:
            with self._guard.waiting(self._upstream):
                events = aiter(await stack.enter_async_context(source))
            self._guard.created()
            while not self._ended:
                while self._held >= self._read_ahead:
                    await self._room.park()
                try:
                    with self._guard.waiting(self._upstream):
                        item = await anext(events)
                except StopAsyncIteration:
                    self._end(UpstreamIncompleteError("upstream ended before its answer did"))
                else:
                    self._take(item)

    def _take(self, item: T) -> None:
        """Pass an item on, unless it is late."""
        event = self._describe(item)
        if self._guard.settled:
            self._guard.late(type(item).__name__ if event is None else event.kind)
            return
        size = self._size(item)
        self._held += size
        try:
            self._send.send_nowait((item, size))
        except trio.BrokenResourceError:
            # The consumer has just left: upstream is cancelled.
            return
        if event is not None:
            self._guard.saw_event(event)
            self._finished = self._finished or event.finish
            if event.terminal:
                self._end(None)

    def _end(self, error: BaseException | None) -> None:
        """Tell how the stream ends: well, once its answer is finished. Leaving the source may take longer."""
        if not self._finished:
            self._error = error
        self._ended = True
        self._send.close()
        self._guard.settle()


@asynccontextmanager
async def stream_guarded(
    source: Source[T],
    guard: StallGuard,
    *,
    describe: Callable[[T], Sighting | None],
    size: Callable[[T], int] = lambda _: 1,
    read_ahead: int = READ_AHEAD,
    failures: tuple[type[Exception], ...] = WIRE_ERRORS,
) -> AsyncIterator[GuardedChannel[T]]:
    """Stream what ``source`` yields, up to its one end, for the length of a block.

    A task of its own reads ahead, so that the end of upstream is noticed while the consumer is busy; it is told when
    the consumer comes back. What comes after the end is dropped and logged as ``late_event``, with kind and delay.

    Args:
        source: Entered (the creation of the stream), iterated and left in the reading task. An async generator comes
            as ``aclosing(generator)``, any other iterable as ``nullcontext(iterable)``.
        guard: An open guard, of this stream alone. The source may report bytes to it and read through it, too.
        describe: Says what an item is; None for one made locally, which proves nothing about upstream.
        size: How much an item counts for ``read_ahead``.
        read_ahead: How much may wait for the consumer; upstream is not read while it is reached. The last item may
            pass it.
        failures: What ``source`` fails with, beside an `OcpError`: told to the consumer, in its place in the stream.
            Other exceptions are defects, and leave the block at once.

    Cancellation: leaving the block before the end cancels ``source`` at once and waits for its clean-up; what it raises
    then is not told.
    """
    channel = GuardedChannel(guard, describe, size, read_ahead)
    told: tuple[type[Exception], ...] = (OcpError, *failures)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.pump, source, told)
            yield channel
            channel.leave()
