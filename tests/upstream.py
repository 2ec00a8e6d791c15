"""An upstream that follows a sequence such as ``0 S P; 3 B; 7 T``: seconds, then what comes off the wire.

The letters are those of the specification's sequences: S a locally made start, P a content delta, B a boundary, T a
terminal event, c bytes that carry no event. Beside them: R reasoning, U an unknown type, F a finish reason, N usage,
E a terminal error, ``end`` the end of the stream, ``fails`` a broken connection. After the last item it is silent.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import trio

from ocp_trio.errors import UpstreamIncompleteError, UpstreamStalledError
from ocp_trio.streaming import GuardedChannel, Sighting, StallGuard, StallLimits, open_stall_guard, stream_guarded

__all__ = ["IDLE", "Timeline", "Upstream", "collect", "describe", "observe", "open_guarded", "parse"]

Timeline = list[tuple[float, str]]
IDLE = StallLimits(idle=5)

_MEANINGS = {
    "P": Sighting("delta", content=True, visible=True),
    "R": Sighting("reasoning", content=True),
    "B": Sighting("boundary"),
    "U": Sighting("unknown"),
    "F": Sighting("finish", finish=True),
    "N": Sighting("usage"),
    "T": Sighting("done", terminal=True),
    "E": Sighting("error", terminal=True),
}


def describe(item: str) -> Sighting | None:
    """Say what a letter means; None for what was made locally."""
    return _MEANINGS.get(item)


def parse(sequence: str) -> Timeline:
    """Return (time, letter) of each item."""
    steps = [step.split() for step in sequence.split(";") if step.strip()]
    return [(float(at), item) for at, *items in steps for item in items]


class Upstream:
    """A source that follows a sequence.

    Attributes:
        events: When what happened to it: ``opened``, ``cancelled``, ``left``. Times count from `open`.
    """

    def __init__(self, sequence: str, *, creation: float = 0, clean_up: float = 0) -> None:
        self.events: Timeline = []
        self._sequence = sequence
        self._creation = creation
        self._clean_up = clean_up
        self._began = 0.0

    def _note(self, event: str) -> None:
        self.events.append((trio.current_time() - self._began, event))

    @asynccontextmanager
    async def open(self, guard: StallGuard | None = None) -> AsyncIterator[AsyncGenerator[str, None]]:
        """Open it for the length of a block; leaving it takes the time of its clean-up, shielded."""
        self._began = trio.current_time()
        try:
            await trio.sleep(self._creation)
            self._note("opened")
            async with aclosing(self._items(guard)) as items:
                yield items
        except trio.Cancelled:
            self._note("cancelled")
            raise
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(self._clean_up)
            self._note("left")

    async def _items(self, guard: StallGuard | None) -> AsyncGenerator[str, None]:
        for at, item in parse(self._sequence):
            if trio.current_time() < self._began + at:
                await trio.sleep_until(self._began + at)
            match item:
                case "c":
                    assert guard is not None
                    guard.saw_bytes(1)
                case "end":
                    return
                case "fails":
                    raise trio.BrokenResourceError
                case _:
                    yield item
        await trio.sleep_forever()


async def collect(events: trio.abc.ReceiveChannel[str], *, began: float = 0) -> Timeline:
    """Return how many seconds after ``began`` each item arrived, and at last how the stream ended."""
    seen: Timeline = []
    try:
        async for item in events:
            seen.append((trio.current_time() - began, item))
        end = "end"
    except UpstreamStalledError as error:
        end = f"stalled: {error.facts.phase}"
    except UpstreamIncompleteError:
        end = "incomplete"
    except trio.BrokenResourceError:
        end = "broken"
    return [*seen, (trio.current_time() - began, end)]


@asynccontextmanager
async def open_guarded(
    source: Upstream | str | AbstractAsyncContextManager[AsyncIterable[str]],
    limits: StallLimits = IDLE,
    **options: Any,
) -> AsyncIterator[GuardedChannel[str]]:
    """Stream an upstream, or another source of letters, through a guard of its own."""
    async with open_stall_guard(limits) as guard:
        upstream = Upstream(source) if isinstance(source, str) else source
        opened = upstream.open(guard) if isinstance(upstream, Upstream) else upstream
        async with stream_guarded(opened, guard, **{"describe": describe, **options}) as events:
            yield events


async def observe(upstream: Upstream | str, limits: StallLimits = IDLE) -> Timeline:
    """Consume an upstream through a guard, at once, and return what was seen."""
    began = trio.current_time()
    async with open_guarded(upstream, limits) as events:
        return await collect(events, began=began)
