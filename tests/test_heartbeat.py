"""A heartbeat says in each silence that the stream is alive, and does nothing else."""

import math
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock
from upstream import Timeline, Upstream, open_guarded
from writer import Writer, exchange

from ocp_trio.streaming import open_rearm, run_heartbeat

RUNS = 200
"""Trio reverses the order of the tasks that become runnable in one instant, or not, by chance."""


def beats(*times: float) -> Timeline:
    return [(time, "beat") for time in times]


# The heartbeat alone


class Offers:
    """Where beats are offered to.

    Attributes:
        times: When one was.
    """

    def __init__(self, refuse: Callable[[], None] = lambda: None) -> None:
        self.times: list[float] = []
        self._refuse = refuse

    def offer(self) -> None:
        self.times.append(trio.current_time())
        self._refuse()


async def test_each_silent_interval_yields_one_beat(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    rearm, rearmed = open_rearm()
    offers = Offers()
    nursery.start_soon(run_heartbeat, 10, rearmed, offers.offer)

    await trio.sleep(35)
    rearm.close()

    assert offers.times == [10, 20, 30]


async def test_each_write_starts_the_interval_anew(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    rearm, rearmed = open_rearm()
    offers = Offers()
    nursery.start_soon(run_heartbeat, 10, rearmed, offers.offer)

    for _ in range(5):
        await trio.sleep(7)
        rearm()
    await trio.sleep(20.5)
    rearm.close()

    assert offers.times == [45, 55]


async def test_a_burst_of_writes_in_one_instant_is_one_write(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    rearm, rearmed = open_rearm()
    offers = Offers()
    nursery.start_soon(run_heartbeat, 10, rearmed, offers.offer)
    await trio.sleep(4)

    for _ in range(10_000):
        rearm()
    await trio.sleep(11)
    rearm.close()

    assert offers.times == [14]  # row 39


async def test_a_beat_that_a_busy_writer_refuses_is_not_kept(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    def refuse() -> None:
        raise trio.WouldBlock

    rearm, rearmed = open_rearm()
    offers = Offers(refuse)
    nursery.start_soon(run_heartbeat, 10, rearmed, offers.offer)

    await trio.sleep(25)
    rearm.close()

    assert offers.times == [10, 20]


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
async def test_a_writer_that_has_gone_ends_it(autojump_clock: MockClock, error: type[Exception]) -> None:
    def refuse() -> None:
        raise error

    _, rearmed = open_rearm()
    offers = Offers(refuse)

    await run_heartbeat(10, rearmed, offers.offer)

    assert offers.times == [10]


async def test_closing_ends_it_at_once(autojump_clock: MockClock) -> None:
    rearm, rearmed = open_rearm()
    offers = Offers()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_heartbeat, 10, rearmed, offers.offer)
        await trio.sleep(3)
        rearm.close()

    assert trio.current_time() == 3
    assert offers.times == []


async def test_what_is_written_after_its_end_disturbs_nobody(autojump_clock: MockClock) -> None:
    rearm, rearmed = open_rearm()

    with trio.move_on_after(3):
        await run_heartbeat(10, rearmed, Offers().offer)

    rearm()
    assert trio.current_time() == 3


@pytest.mark.parametrize("interval", [0, math.inf])
async def test_it_can_be_turned_off(autojump_clock: MockClock, nursery: trio.Nursery, interval: float) -> None:
    rearm, rearmed = open_rearm()
    offers = Offers()
    nursery.start_soon(run_heartbeat, interval, rearmed, offers.offer)

    await trio.sleep(86_000)
    rearm.close()

    assert offers.times == []


@pytest.mark.parametrize("interval", [-5, math.nan])
async def test_an_interval_that_is_no_time_span_is_refused(autojump_clock: MockClock, interval: float) -> None:
    _, rearmed = open_rearm()

    with pytest.raises(ValueError, match="must"):
        await run_heartbeat(interval, rearmed, Offers().offer)


# In an exchange


async def test_it_beats_before_the_first_byte_and_in_mid_stream(autojump_clock: MockClock) -> None:
    seen = await exchange("25 P; 26 P; 47 T", interval=10)

    assert seen == [*beats(10, 20), (25, "P"), (26, "P"), *beats(36, 46), (47, "T")]


async def test_it_does_not_beat_in_a_healthy_stream(autojump_clock: MockClock) -> None:
    assert await exchange("9 P; 18 P; 27 P; 36 T", interval=10) == [(9, "P"), (18, "P"), (27, "P"), (36, "T")]


async def test_what_a_client_does_not_see_does_not_start_the_interval_anew(autojump_clock: MockClock) -> None:
    seen = await exchange("6 U; 12 U; 18 U; 23 T", interval=10)

    assert seen == [*beats(10, 20), (23, "T")]


async def test_there_is_none_in_a_burst_and_the_first_comes_one_interval_after_its_end(
    autojump_clock: MockClock,
) -> None:
    seen = await exchange("3" + " P" * 1000 + "; 15 T", interval=10)

    assert [item for _, item in seen[:1000]] == ["P"] * 1000  # row 39
    assert seen[1000:] == [*beats(13), (15, "T")]


async def test_it_stands_after_the_whole_frame_that_is_being_written(autojump_clock: MockClock) -> None:
    class InPieces(Writer):
        async def write(self, item: str) -> bool:
            if item != "P":
                return await super().write(item)
            for piece in ("P1", "P2", "P3"):
                self.seen.append((trio.current_time(), piece))
                await trio.sleep(3)
            return True

    seen = await exchange("5 P; 30 T", InPieces(), interval=6)

    assert seen == [(5, "P1"), (8, "P2"), (11, "P3"), *beats(20, 26), (30, "T")]  # row 34


async def test_a_client_that_does_not_read_finds_no_beat_when_it_reads_again(autojump_clock: MockClock) -> None:
    seen = await exchange("5 P; 110 T", Writer({"P": 100}), interval=10)

    assert seen == [(105, "P"), (110, "T")]  # row 35


async def test_one_that_stops_reading_at_a_beat_finds_that_one(autojump_clock: MockClock) -> None:
    seen = await exchange("105 T", Writer({"beat": 93}), interval=10)

    assert seen == [(103, "beat"), (105, "T")]


async def outcomes(play: Callable[[], Awaitable[Timeline]]) -> set[tuple[str, ...]]:
    """Return all that was written in many runs."""
    return {tuple(item for _, item in await play()) for _ in range(RUNS)}


async def test_nothing_follows_a_terminal_that_comes_when_a_beat_is_due(autojump_clock: MockClock) -> None:
    seen = await outcomes(lambda: exchange("5 P; 15 T", interval=10))

    # Whether the silence was broken in time is for chance to say; what ends the stream is not.
    assert seen <= {("P", "beat", "T"), ("P", "T")}  # row 36


async def test_nothing_follows_a_failure_that_comes_when_a_beat_is_due(autojump_clock: MockClock) -> None:
    seen = await outcomes(lambda: exchange("5 P; 15 end", interval=10))

    assert seen <= {("P", "beat", "UpstreamIncompleteError"), ("P", "UpstreamIncompleteError")}


async def test_no_timer_is_left_when_the_exchange_ends_in_the_interval(autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics()

    await exchange("5 P; 7 T", interval=10)

    after = trio.lowlevel.current_statistics()
    assert trio.current_time() == 7  # row 37
    assert (after.tasks_living, after.seconds_to_next_deadline) == (before.tasks_living, math.inf)


async def test_it_is_no_life_of_the_upstream(autojump_clock: MockClock) -> None:
    seen = await exchange(open_guarded(Upstream("0 P")), interval=1)

    assert seen == [(0, "P"), *beats(1, 2, 3, 4, 5), (5, "UpstreamStalledError")]  # row 17


async def test_it_goes_on_while_a_stalled_upstream_is_cleaned_up(autojump_clock: MockClock) -> None:
    seen = await exchange(open_guarded(Upstream("0 P", clean_up=5)), interval=4)

    assert seen == [(0, "P"), *beats(4, 8), (10, "UpstreamStalledError")]
