"""Upstream is read ahead of its consumer, fails in its place, and does not outlive it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext

import pytest
import trio
import trio.testing
from trio.testing import MockClock
from upstream import Timeline, Upstream, collect, observe, open_guarded

from ocp_trio.errors import UpstreamError
from ocp_trio.streaming import GuardedChannel, Sighting, StallLimits


class OwnError(Exception):
    """Of a class that nothing is said about."""


async def failing(error: Exception) -> AsyncGenerator[str, None]:
    yield "P"
    await trio.sleep(1)
    raise error


# Ahead of the consumer


async def test_the_death_of_upstream_is_noticed_while_the_consumer_is_parked(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 2 fails")

    async with open_guarded(upstream, StallLimits(idle=10)) as events:
        assert await events.receive() == "P"
        await trio.sleep(60)
        noticed = [*upstream.events]

        assert await collect(events) == [(60, "broken")]  # row 16
    assert noticed == [(0, "opened"), (2, "left")]


async def test_so_is_a_stall(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 1 P")

    async with open_guarded(upstream) as events:
        assert await events.receive() == "P"
        await trio.sleep(60)
        noticed = [*upstream.events]

        assert await collect(events) == [(60, "P"), (60, "stalled: idle")]
    assert noticed == [(0, "opened"), (6, "cancelled"), (6, "left")]


async def test_upstream_is_not_read_while_sixteen_items_wait(autojump_clock: MockClock) -> None:
    produced = 0

    async def produce() -> AsyncGenerator[str, None]:
        nonlocal produced
        while True:
            produced += 1
            yield "P"

    counts = []
    async with open_guarded(aclosing(produce())) as events:
        for count in (0, 1, 3):
            for _ in range(count):
                await events.receive()
            await trio.sleep(1000)
            counts.append(produced)

    assert counts == [16, 17, 20]


async def test_how_much_waits_can_be_bounded_by_size(autojump_clock: MockClock) -> None:
    passed: Timeline = []

    async def produce() -> AsyncGenerator[str, None]:
        for size in (60, 30, 9, 500, 1):
            passed.append((trio.current_time(), str(size)))
            yield "P" * size

    def text(_: str) -> Sighting:
        return Sighting("text")

    async with open_guarded(aclosing(produce()), describe=text, size=len, read_ahead=100) as events:
        for count in (3, 1, 0):
            await trio.sleep(10)
            for _ in range(count):
                await events.receive()

    # The last item may pass the bound, whatever its size; then nothing is read until it is taken.
    assert passed == [(0, "60"), (0, "30"), (0, "9"), (0, "500"), (20, "1")]


async def test_an_item_of_exactly_the_bound_is_the_last(autojump_clock: MockClock) -> None:
    passed = []

    async def produce() -> AsyncGenerator[str, None]:
        for size in (60, 40, 1):
            passed.append(size)
            yield "P" * size

    async with open_guarded(aclosing(produce()), size=len, read_ahead=100):
        await trio.sleep(1)

    assert passed == [60, 40]


# Failures


async def test_upstreams_failure_is_told_in_its_place(autojump_clock: MockClock) -> None:
    assert await observe("0 P; 1 P; 2 fails") == [(0, "P"), (1, "P"), (2, "broken")]


@pytest.mark.parametrize("error", [UpstreamError("overloaded"), ConnectionResetError(), trio.BrokenResourceError()])
async def test_a_failing_creation_is_told_as_it_was_raised(autojump_clock: MockClock, error: Exception) -> None:
    @asynccontextmanager
    async def refusing() -> AsyncIterator[AsyncGenerator[str, None]]:
        async with trio.open_nursery():
            raise error
        yield failing(error)

    async with open_guarded(refusing()) as events:
        with pytest.raises(type(error)) as caught:
            await events.receive()

    assert caught.value is error


async def test_several_failures_at_once_are_told_as_a_group(autojump_clock: MockClock) -> None:
    @asynccontextmanager
    async def refusing() -> AsyncIterator[AsyncGenerator[str, None]]:
        raise ExceptionGroup("both ways", [ConnectionResetError(), BrokenPipeError()])
        yield failing(OwnError())

    async with open_guarded(refusing()) as events:
        with pytest.raises(ExceptionGroup, match="both ways"):
            await events.receive()


async def test_failures_of_any_class_can_be_named(autojump_clock: MockClock) -> None:
    async with open_guarded(aclosing(failing(OwnError())), failures=(OwnError,)) as events:
        await trio.sleep(10)
        assert await events.receive() == "P"
        with pytest.raises(OwnError):
            await events.receive()


async def test_a_failure_of_another_class_is_a_defect_and_ends_the_block_at_once(autojump_clock: MockClock) -> None:
    async def consume() -> None:
        async with open_guarded(aclosing(failing(OwnError()))):
            await trio.sleep(10)

    with pytest.raises(OwnError):
        await consume()
    assert trio.current_time() == 1


# A consumer that leaves


async def test_a_consumer_that_leaves_stops_the_upstream_at_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ocp_trio.streaming")
    upstream = Upstream("; ".join(f"{at} P" for at in range(300)))

    async with open_guarded(upstream) as events:
        await events.receive()
        await trio.sleep(1)

    assert trio.current_time() == 1  # row 32
    assert [event for _, event in upstream.events] == ["opened", "cancelled", "left"]
    assert caplog.records == []


async def test_so_does_one_that_closes_its_end(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P", clean_up=1)

    async with open_guarded(upstream) as events:
        await events.receive()
        with trio.testing.assert_checkpoints():
            await events.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await events.receive()
        await trio.sleep(100)

    assert upstream.events == [(0, "opened"), (0, "cancelled"), (1, "left")]


async def test_after_the_end_leaving_cancels_nothing(autojump_clock: MockClock) -> None:
    left = []

    @asynccontextmanager
    async def source() -> AsyncIterator[AsyncGenerator[str, None]]:
        async with Upstream("0 T").open() as items:
            yield items
        await trio.sleep(10)
        left.append(trio.current_time())

    async with open_guarded(source()) as events:
        assert await events.receive() == "T"

    assert left == [10]


@pytest.mark.parametrize("error", [ConnectionResetError(), UpstreamError("broken off")])
async def test_what_upstream_raises_because_its_caller_cancels_is_a_cancellation(
    autojump_clock: MockClock, error: Exception
) -> None:
    async def fragile() -> AsyncGenerator[str, None]:
        yield "P"
        try:
            await trio.sleep_forever()
        finally:
            raise error

    with trio.move_on_after(3) as caller:
        async with open_guarded(aclosing(fragile())) as events:
            await collect(events)

    assert caller.cancelled_caught  # row 31
    assert trio.current_time() == 3


# Items of the caller's own


async def test_an_item_can_be_offered_to_a_consumer_that_waits(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    seen: Timeline = []

    async def consume(events: GuardedChannel[str]) -> None:
        for _ in range(3):
            seen.append((trio.current_time(), await events.receive()))

    async with open_guarded("2 P; 3 P") as events:
        nursery.start_soon(consume, events)
        await trio.sleep(1)
        events.offer("own")
        with pytest.raises(trio.WouldBlock):
            events.offer("second")
        await trio.sleep(3)
        with pytest.raises(trio.WouldBlock):
            events.offer("third")

    assert [item for _, item in seen] == ["own", "P", "P"]


async def test_it_takes_no_room_of_upstreams(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    produced = 0

    async def produce() -> AsyncGenerator[str, None]:
        nonlocal produced
        await trio.sleep(2)
        while True:
            produced += 1
            yield "P"

    async with open_guarded(aclosing(produce())) as events:
        nursery.start_soon(events.receive)
        await trio.sleep(1)
        events.offer("own")
        await trio.sleep(1000)

    assert produced == 16


async def test_it_is_no_sign_of_life(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    async def offer(events: GuardedChannel[str]) -> None:
        for _ in range(9):
            await trio.sleep(1)
            with pytest.raises(trio.WouldBlock) if trio.current_time() > 5 else nullcontext():
                events.offer("own")

    async with open_guarded("0 P") as events:
        nursery.start_soon(offer, events)
        seen = await collect(events)

    assert seen == [(0, "P"), *((at, "own") for at in range(1, 6)), (5, "stalled: idle")]
