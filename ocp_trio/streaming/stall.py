"""Tell a slow upstream from a dead one.

Life is anything that comes off the wire: the guard is a deadline around the wait itself, not a list of event types.
Its clock runs only while upstream is waited for, so a consumer that is slow never makes its upstream look stalled.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from math import inf
from typing import TypeVar

import trio

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.streaming.groups import unwrap_lone_error
from ocp_trio.streaming.windows import Sighting, StallLimits, StallWindows

__all__ = ["GuardedStream", "StallGuard", "open_stall_guard"]

LAST_LOOK = 10
"""Scheduler passes between a deadline and its verdict: whatever can be read at the deadline itself still wins."""

T = TypeVar("T")
logger = logging.getLogger("ocp_trio.streaming")


class _WaitingClock:
    """Trio's clock, but that it stands still while nobody waits.

    Attributes:
        running: Whether it does not.
        lost: Seconds that it is behind.
    """

    def __init__(self) -> None:
        self.running = False
        self.lost = 0.0
        self._stopped_at = trio.current_time()

    def time(self) -> float:
        """Return its time."""
        return (trio.current_time() if self.running else self._stopped_at) - self.lost

    def run(self, *, running: bool) -> None:
        """Stop it, or let it go on."""
        if self.running:
            self._stopped_at = trio.current_time()
        elif running:
            self.lost += trio.current_time() - self._stopped_at
        self.running = running


class StallGuard:
    """The clocks of one upstream. Use `open_stall_guard`, `read` through it, and report what was read.

    Attributes:
        verdict: What it ends with if nothing more is waited for: a stall, or the end of a finished answer's grace.
    """

    def __init__(self, limits: StallLimits) -> None:
        self.verdict: UpstreamStalledError | trio.EndOfChannel | None = None
        self._clock = _WaitingClock()
        self._windows = StallWindows(limits, self._clock.time())
        self._suspended = False
        self._waits: list[trio.CancelScope] = []
        self._closed = False
        self._alarm = trio.CancelScope()
        self._settled_at = inf

    @property
    def settled(self) -> bool:
        """Whether it is known how the stream ends."""
        return self._settled_at < inf

    def created(self) -> None:
        """Note that the stream exists: the child runs, the response's headers are here."""
        self._windows.created = True

    def saw_bytes(self, count: int) -> None:
        """Note that ``count`` bytes came off the wire, whatever they mean; 0 is none, at the end of a stream."""
        if count:
            self._windows.saw_bytes(count, self._clock.time())
            self._set_alarm()

    def saw_event(self, event: Sighting, *, count: int = 1) -> None:
        """Note a parsed event that came off the wire, the last of ``count`` that were read at once."""
        self._windows.saw_event(event, count, self._clock.time())
        self.suspend(while_silent=event.suspends)

    def suspend(self, *, while_silent: bool) -> None:
        """Stop the clocks while upstream is silent by nature (a local tool runs), or let them go on."""
        self._suspended = while_silent
        self._set_alarm()

    def settle(self) -> None:
        """Note that it is known how the stream ends: whatever comes later is late."""
        if not self.settled:
            self._settled_at = trio.current_time()
            self._set_alarm()

    def late(self, kind: str) -> None:
        """Log what came after the stream was settled, and is dropped."""
        logger.info("late_event", extra={"kind": kind, "delay": trio.current_time() - self._settled_at})

    @contextmanager
    def waiting(self, scope: trio.CancelScope) -> Iterator[None]:
        """Run the clocks for the length of a block; a verdict cancels ``scope``, which contains it.

        Such blocks may be nested, and stand in several tasks at once.

        Raises:
            trio.ClosedResourceError: the guard's own block has been left: it would not guard.
        """
        if self._closed:
            raise trio.ClosedResourceError("the block of this guard has been left")
        if self.verdict is not None:
            scope.cancel()
        self._waits.append(scope)
        self._set_alarm()
        try:
            yield
        finally:
            self._waits.remove(scope)
            self._set_alarm()

    async def read(self, receive: Callable[[], Awaitable[T]]) -> T:
        """Await ``receive()`` with the clocks running.

        Cancellation: passes to ``receive``; the caller's own cancellation is never reported as a stall.

        Raises:
            UpstreamStalledError: a limit passed; ``receive`` has been cancelled and has ended.
            trio.EndOfChannel: nothing came in the grace after the answer's finish.
        """
        with trio.CancelScope() as reading:
            with self.waiting(reading):
                item = await receive()
            if self.verdict is None:
                return item
            self.late(type(item).__name__)
        assert self.verdict is not None
        raise self.verdict

    def _set_alarm(self) -> None:
        self._clock.run(running=bool(self._waits) and not self._suspended and not self.settled)
        # One that is early is set anew when it goes off: once in a window, not with every read.
        if self._alarm.deadline > (deadline := self._deadline()):
            self._alarm.deadline = deadline

    def _deadline(self) -> float:
        return self._windows.end() + self._clock.lost if self._clock.running else inf

    async def watch(self) -> None:
        """Wait for the silence to become too long, then cancel whoever waits."""
        while self.verdict is None:
            with trio.CancelScope(deadline=self._deadline()) as self._alarm:
                await trio.sleep_forever()
            looks = LAST_LOOK
            while looks and self._deadline() <= trio.current_time():
                await trio.lowlevel.checkpoint()
                looks -= 1
            if not looks:
                self._give_up()

    def _give_up(self) -> None:
        if self._windows.finished_at == inf:
            self.verdict = UpstreamStalledError(self._windows.facts(self._clock.time()))
        else:
            self.verdict = trio.EndOfChannel("the answer was finished")
        for scope in self._waits:
            scope.cancel()
        self.settle()

    def close(self) -> None:
        """Guard no longer."""
        self._closed = True


class GuardedStream(trio.abc.ReceiveStream):
    """A receive stream that is read through a guard: its bytes are life.

    Args:
        stream: Any receive stream; closed with this one.
        guard: An open guard. Its owner reports what the bytes mean, with `StallGuard.saw_event`.
    """

    def __init__(self, stream: trio.abc.ReceiveStream, guard: StallGuard) -> None:
        self._stream = stream
        self._guard = guard

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return the next bytes; ``b""`` at the end, or after the grace that follows an answer's finish.

        Raises:
            UpstreamStalledError: a limit passed.
        """
        try:
            data = await self._guard.read(partial(self._stream.receive_some, max_bytes))
        except trio.EndOfChannel:
            return b""
        self._guard.saw_bytes(len(data))
        return data

    async def aclose(self) -> None:
        """Close the stream beneath."""
        await self._stream.aclose()


@asynccontextmanager
async def open_stall_guard(limits: StallLimits) -> AsyncIterator[StallGuard]:
    """Watch an upstream for the length of a block.

    Cancellation: at once; the guard holds nothing but its own task.
    """
    guard = StallGuard(limits)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(guard.watch)
            try:
                yield guard
            finally:
                guard.close()
            nursery.cancel_scope.cancel()
