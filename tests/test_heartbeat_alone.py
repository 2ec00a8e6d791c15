"""The heartbeat without anything else: an interval, a channel that re-arms it, and where beats are offered to."""

import math
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from ocp_trio.streaming import open_rearm, run_heartbeat


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
