"""What can be read at the very deadline wins, in whatever order Trio runs the tasks of that instant."""

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing
from trio.testing import MockClock
from upstream import Timeline, Upstream, collect, observe, open_guarded

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.streaming import GuardedStream, StallLimits, open_stall_guard

RUNS = 200
"""Trio reverses the order of the tasks that become runnable in one instant, or not, by chance."""
FEW = 50
"""Enough for those that are decided in the same place."""


async def outcomes(play: Callable[[], Awaitable[Timeline]], runs: int = FEW) -> set[tuple[tuple[float, str], ...]]:
    """Return all that was seen in so many runs, a second after each other."""
    seen = set()
    for _ in range(runs):
        seen.add(tuple(await play()))
        await trio.sleep(1)
    return seen


async def relayed(hops: int) -> Timeline:
    """Observe a channel into which a done is sent at the deadline, through tasks that pass it on."""
    channels = [trio.open_memory_channel[str](0) for _ in range(hops + 1)]
    began = trio.current_time()

    async def produce() -> None:
        await channels[0][0].send("P")
        await trio.sleep_until(began + 5)
        await channels[0][0].send("T")

    async def relay(hop: int) -> None:
        async for item in channels[hop][1]:
            await channels[hop + 1][0].send(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        for hop in range(hops):
            nursery.start_soon(relay, hop)
        async with open_guarded(channels[-1][1]) as events:
            seen = await collect(events, began=began)
        nursery.cancel_scope.cancel()
    return seen


@pytest.mark.parametrize("hops", [0, 1, 3])
async def test_a_done_that_can_be_read_at_the_deadline_wins(autojump_clock: MockClock, hops: int) -> None:
    assert await outcomes(lambda: relayed(hops), RUNS) == {((0, "P"), (5, "T"), (5, "end"))}  # row 25


async def test_so_does_one_that_a_generator_yields(autojump_clock: MockClock) -> None:
    assert await outcomes(lambda: observe("0 P; 5 T")) == {((0, "P"), (5, "T"), (5, "end"))}


@pytest.mark.parametrize("item", ["P", "B", "c"])
async def test_so_does_any_sign_of_life(autojump_clock: MockClock, item: str) -> None:
    seen = await outcomes(lambda: observe(f"0 P; 5 {item}; 9 T"))

    middle = () if item == "c" else ((5, item),)
    assert seen == {((0, "P"), *middle, (9, "T"), (9, "end"))}


async def test_so_do_bytes_of_a_stream(autojump_clock: MockClock) -> None:
    async def play() -> Timeline:
        send, receive = trio.testing.memory_stream_one_way_pair()
        began = trio.current_time()
        seen: Timeline = []

        async def produce() -> None:
            await trio.sleep(5)
            await send.send_all(b"a")

        async def read() -> None:
            async with open_stall_guard(StallLimits(first_event=5, idle=5)) as guard:
                async for data in GuardedStream(receive, guard):
                    seen.append((trio.current_time() - began, data.decode()))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            with pytest.raises(UpstreamStalledError):
                await read()
        return [*seen, (trio.current_time() - began, "stalled")]

    assert await outcomes(play) == {((5, "a"), (10, "stalled"))}


async def test_so_does_a_creation_that_succeeds_at_the_deadline(autojump_clock: MockClock) -> None:
    limits = StallLimits(first_event=5, idle=5)

    seen = await outcomes(lambda: observe(Upstream("5 P; 6 T", creation=5), limits))

    assert seen == {((5, "P"), (6, "T"), (6, "end"))}


async def test_a_start_that_is_local_saves_nothing(autojump_clock: MockClock) -> None:
    seen = await outcomes(lambda: observe("5 S", StallLimits(first_event=5)))

    assert seen == {((5, "S"), (5, "stalled: first_event"))}


async def test_usage_wins_at_the_end_of_the_grace(autojump_clock: MockClock) -> None:
    seen = await outcomes(lambda: observe("0 P F; 2 N"))

    assert seen == {((0, "P"), (0, "F"), (2, "N"), (2, "end"))}


async def test_what_comes_an_instant_later_is_too_late(autojump_clock: MockClock) -> None:
    assert await outcomes(lambda: observe("0 P; 5.125 T")) == {((0, "P"), (5, "stalled: idle"))}


@pytest.mark.parametrize(("passes", "end"), [(9, "read"), (11, "stalled")])
async def test_the_last_look_lasts_ten_passes_of_the_scheduler(
    autojump_clock: MockClock, passes: int, end: str
) -> None:
    async def receive() -> str:
        await trio.sleep(5)
        for _ in range(passes):
            await trio.lowlevel.checkpoint()
        return "read"

    async def play() -> Timeline:
        began = trio.current_time()
        async with open_stall_guard(StallLimits(first_event=5)) as guard:
            try:
                seen = await guard.read(receive)
            except UpstreamStalledError:
                seen = "stalled"
        return [(trio.current_time() - began, seen)]

    assert await outcomes(play) == {((5, end),)}


async def test_the_callers_cancellation_at_the_deadline_is_no_stall(autojump_clock: MockClock) -> None:
    async def play() -> Timeline:
        with trio.move_on_after(5) as caller:
            await observe("0 P")
        return [(0, f"cancelled: {caller.cancelled_caught}")]

    assert await outcomes(play) == {((0, "cancelled: True"),)}
