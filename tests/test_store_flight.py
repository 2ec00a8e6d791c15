"""A flight keeps what it has published for those who join later, and never more than its bound."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from ocp_trio.store import FlightLostError
from ocp_trio.store.flight import Flight


async def publish_all(flight: Flight, sizes: list[int], log: list[int]) -> None:
    for number, size in enumerate(sizes):
        await flight.publish(b"x" * size)
        log.append(number)
    flight.finish()


async def test_beyond_the_limit_nobody_joins_and_what_all_have_is_dropped() -> None:
    flight = Flight(max_bytes=300)
    with flight.joined() as cursor:
        for _ in range(3):
            await flight.publish(b"x" * 50)
            await anext(cursor)
        before = flight.joinable
        await flight.publish(b"x" * 100)

        await anext(cursor)
        flight.finish()

        assert (before, flight.joinable) == (True, False)
        assert flight.read_all(cursor) == []
        with pytest.raises(StopAsyncIteration):
            await anext(cursor)


async def test_beyond_the_limit_the_upstream_waits_for_the_fastest_follower_and_leaves_the_slow_ones_behind(
    nursery: trio.Nursery,
) -> None:
    flight = Flight(max_bytes=300)
    log: list[int] = []
    with flight.joined() as slow, flight.joined() as close, flight.joined() as fast:
        nursery.start_soon(publish_all, flight, [100] * 4, log)
        for cursor in (slow, close, close, fast, fast):
            await anext(cursor)
        await trio.testing.wait_all_tasks_blocked()
        waiting = list(log)

        assert [len(batch) async for batch in fast] == [100] * 2
        await trio.testing.wait_all_tasks_blocked()

        assert (waiting, log, flight.followers) == ([0, 1, 2], [0, 1, 2, 3], 2)
        assert [len(batch) async for batch in close] == [100] * 2
        with pytest.raises(FlightLostError):
            await anext(slow)
    assert flight.followers == 0


async def test_a_reader_that_is_no_reason_to_go_on_is_waited_for(nursery: trio.Nursery) -> None:
    flight = Flight(max_bytes=300)
    log: list[int] = []
    with flight.joined(counts=False) as copier, flight.joined() as fast:
        nursery.start_soon(publish_all, flight, [100] * 4, log)
        assert [len(await anext(fast)) for _ in range(3)] == [100] * 3
        await trio.testing.wait_all_tasks_blocked()
        waiting = list(log)

        assert [len(batch) async for batch in copier] == [100] * 4

    assert (waiting, log) == ([0, 1], [0, 1, 2, 3])


async def test_a_slow_follower_that_leaves_lets_the_upstream_go_on(nursery: trio.Nursery) -> None:
    flight = Flight(max_bytes=300)
    log: list[int] = []
    with flight.joined():
        nursery.start_soon(publish_all, flight, [100] * 4, log)
        await trio.testing.wait_all_tasks_blocked()
        waiting = list(log)
    await trio.testing.wait_all_tasks_blocked()

    assert (waiting, log) == ([0, 1], [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("end", "ending"),
    [(Flight.finish, StopAsyncIteration), (lambda flight: flight.lose(FlightLostError("gone")), FlightLostError)],
)
async def test_after_the_end_all_that_was_published_is_still_read(
    end: Callable[[Flight], None], ending: type[Exception]
) -> None:
    flight = Flight()
    with flight.joined() as cursor:
        await flight.publish(b"a")
        end(flight)
        flight.lose(FlightLostError("too late to matter"))

        assert await anext(cursor) == b"a"
        with pytest.raises(ending, match=r"^(gone)?$"):
            await anext(cursor)
