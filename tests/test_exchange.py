"""An exchange has one last item, told at once, and keeps no upstream alive for a client that does not read."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import pytest
import trio
from trio.testing import MockClock
from upstream import Upstream, open_guarded
from writer import Writer, exchange

from ocp_trio.errors import OcpError, ShuttingDownError, TotalTimeoutError, UpstreamError
from ocp_trio.streaming import StallLimits


def after(seconds: float, error: OcpError) -> Callable[[], Awaitable[OcpError]]:
    """Return a cut that comes after so many seconds."""

    async def cut() -> OcpError:
        await trio.sleep(seconds)
        return error

    return cut


async def test_items_are_written_one_at_a_time_up_to_the_last(autojump_clock: MockClock) -> None:
    assert await exchange("0 P; 1 B; 2 T P") == [(0, "P"), (1, "B"), (2, "T")]


async def test_a_client_that_reads_slowly_slows_the_upstream(autojump_clock: MockClock) -> None:
    produced: list[float] = []

    @asynccontextmanager
    async def source() -> AsyncIterator[AsyncGenerator[str, None]]:
        async def items() -> AsyncGenerator[str, None]:
            for item in "PPPT":
                produced.append(trio.current_time())
                yield item

        async with aclosing(items()) as opened:
            yield opened

    seen = await exchange(source(), Writer({"P": 10}))

    assert seen == [(10, "P"), (20, "P"), (30, "P"), (30, "T")]
    # One is being written, one waits to be.
    assert produced == [0, 0, 10, 20]


async def test_the_last_item_is_told_while_the_source_is_being_left(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 1 T", clean_up=20)

    assert await exchange(upstream.open()) == [(0, "P"), (1, "T")]
    assert trio.current_time() == 21
    assert upstream.events == [(0, "opened"), (21, "left")]


async def test_a_client_that_does_not_read_the_last_item_keeps_no_source_open(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 1 T", clean_up=1)

    assert await exchange(upstream.open(), Writer({"P": 100})) == [(100, "P"), (100, "T")]
    assert upstream.events == [(0, "opened"), (2, "left")]


async def test_a_source_that_ends_without_a_last_item_is_incomplete_at_once(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 1 end", clean_up=20)

    assert await exchange(upstream.open()) == [(0, "P"), (1, "UpstreamIncompleteError")]


async def test_a_failure_is_told_when_the_source_has_been_left(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P", clean_up=3)
    source = open_guarded(upstream, StallLimits(idle=5))

    assert await exchange(source) == [(0, "P"), (8, "UpstreamStalledError")]
    assert upstream.events == [(0, "opened"), (5, "cancelled"), (8, "left")]


async def test_a_source_that_cannot_be_opened_is_a_failure(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def refusing() -> AsyncIterator[AsyncGenerator[str, None]]:
        raise UpstreamError("overloaded")
        yield

    assert await exchange(refusing()) == [(0, "UpstreamError")]


async def test_a_failure_after_the_last_item_is_not_told(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def source() -> AsyncIterator[AsyncGenerator[str, None]]:
        async with Upstream("0 T").open() as items:
            yield items
        raise UpstreamError("too late")

    assert await exchange(source(), Writer({"T": 5})) == [(5, "T")]


# Ended early


async def test_a_total_timeout_is_refreshed_by_nothing(autojump_clock: MockClock) -> None:
    sequence = "; ".join(f"{at} P" for at in range(0, 3000, 4))
    source = open_guarded(Upstream(sequence), StallLimits(idle=5))

    seen = await exchange(source, cut=after(602, TotalTimeoutError(602)))

    assert seen[-2:] == [(600, "P"), (602, "TotalTimeoutError")]  # row 15


async def test_a_cut_is_told_while_the_source_is_being_left(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P", clean_up=5)

    assert await exchange(upstream.open(), cut=after(3, ShuttingDownError())) == [(0, "P"), (3, "ShuttingDownError")]
    assert upstream.events == [(0, "opened"), (3, "cancelled"), (8, "left")]


async def test_a_cut_frees_the_source_of_a_client_that_does_not_read(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P P P; 50 T")

    seen = await exchange(upstream.open(), Writer({"P": 100}), cut=after(3, ShuttingDownError()))

    assert seen == [(100, "P"), (100, "ShuttingDownError")]
    assert upstream.events == [(0, "opened"), (3, "cancelled"), (3, "left")]


@pytest.mark.parametrize("sequence", ["0 P; 1 T", "0 P; 1 end"])
async def test_a_cut_after_the_last_item_changes_nothing(autojump_clock: MockClock, sequence: str) -> None:
    upstream = Upstream(sequence, clean_up=10)

    seen = await exchange(upstream.open(), Writer({"P": 100}), cut=after(3, ShuttingDownError()))

    assert seen == [(100, "P"), (100, "T" if "T" in sequence else "UpstreamIncompleteError")]
    assert upstream.events == [(0, "opened"), (11, "left")]


async def test_a_cut_after_a_failure_changes_nothing(autojump_clock: MockClock) -> None:
    source = open_guarded(Upstream("0 P"), StallLimits(idle=5))

    seen = await exchange(source, Writer({"P": 100}), cut=after(7, ShuttingDownError()))

    assert seen == [(100, "P"), (100, "UpstreamStalledError")]


async def test_a_cut_is_told_even_if_the_source_fails_because_of_it(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def fragile() -> AsyncIterator[AsyncGenerator[str, None]]:
        try:
            async with Upstream("0 P").open() as items:
                yield items
        finally:
            raise UpstreamError("broken off")

    seen = await exchange(fragile(), Writer({"P": 100}), cut=after(3, ShuttingDownError()))

    assert seen == [(100, "P"), (100, "ShuttingDownError")]


async def test_a_cut_at_the_very_end_leaves_one_last_item(autojump_clock: MockClock) -> None:
    for sequence, end in [("0 P; 3 T", "T"), ("0 P; 3 end", "UpstreamIncompleteError")]:
        for _ in range(100):
            began = trio.current_time()
            seen = await exchange(sequence, Writer({"P": 5}), cut=after(3, ShuttingDownError()))

            assert seen[0] == (began + 5, "P")
            assert seen[1:] in ([(began + 5, end)], [(began + 5, "ShuttingDownError")])


# Whoever ends it


async def test_its_callers_cancellation_ends_the_source_at_once(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 300 T", clean_up=2)

    with trio.move_on_after(1) as caller:
        await exchange(upstream.open(), interval=0.3)

    assert caller.cancelled_caught
    assert upstream.events == [(0, "opened"), (1, "cancelled"), (3, "left")]


async def test_a_writer_that_fails_ends_the_source_at_once(autojump_clock: MockClock) -> None:
    class Failing(Writer):
        async def write(self, item: str) -> bool:
            raise ConnectionResetError(item)

    upstream = Upstream("1 P; 300 T", clean_up=2)

    with pytest.raises(ConnectionResetError):
        await exchange(upstream.open(), Failing(), interval=10)

    assert upstream.events == [(0, "opened"), (1, "cancelled"), (3, "left")]


async def test_nothing_is_left_of_it(autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living

    await exchange("0 P; 5 T", interval=1, cut=after(100, ShuttingDownError()))

    assert trio.lowlevel.current_statistics().tasks_living == before
    assert trio.current_time() == 5
