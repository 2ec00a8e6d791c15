"""Equal requests at once share one run, and no client takes the others along."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio
import trio.testing
from store_engines import Engine

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.store import FlightLostError, Producer, Publish, Store, open_store
from ocp_trio.store.flight import Flight

pytest_plugins = ["store_fixtures"]

KEY = b"\0model and prompt\xff"


class Upstream:
    """Counts its runs, and publishes what a test sends it."""

    def __init__(self) -> None:
        self.runs = 0
        self.cancelled = trio.Event()
        self.send, self._receive = trio.open_memory_channel[bytes](1000)

    async def produce(self, publish: Publish) -> None:
        self.runs += 1
        try:
            async for batch in self._receive:
                await publish(batch)
        except trio.Cancelled:
            self.cancelled.set()
            raise


async def follow(store: Store, produce: Producer, into: list[bytes], key: bytes = KEY) -> None:
    async with store.flights.follow(key, produce) as batches:
        async for batch in batches:
            into.append(batch)  # noqa: PERF401 (others look at it meanwhile)


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until a condition holds; every step is a real wait for what they wait for."""
    while not condition():  # noqa: ASYNC110 (a test looks from outside)
        await trio.sleep(0.001)


async def test_all_followers_get_the_whole_of_one_run(engine: Engine) -> None:
    upstream = Upstream()
    received: list[list[bytes]] = [[] for _ in range(5)]
    with trio.fail_after(10):
        async with open_store(engine.where) as store, trio.open_nursery() as nursery:
            for number, into in enumerate(received):
                nursery.start_soon(follow, store, upstream.produce, into)
                upstream.send.send_nowait(b"%d" % number)
                await until(lambda into=into, number=number: len(into) > number)  # type: ignore[misc]
            upstream.send.close()

    assert received == [[b"0", b"1", b"2", b"3", b"4"]] * 5
    assert upstream.runs == 1


async def test_the_first_client_may_leave(engine: Engine) -> None:
    upstream = Upstream()
    first: list[bytes] = []
    second: list[bytes] = []
    with trio.fail_after(10):
        async with open_store(engine.where) as store, trio.open_nursery() as nursery:
            with trio.CancelScope() as leaving:
                async with trio.open_nursery() as clients:
                    clients.start_soon(follow, store, upstream.produce, first)
                    nursery.start_soon(follow, store, upstream.produce, second)
                    upstream.send.send_nowait(b"a")
                    await until(lambda: first == second == [b"a"])
                    leaving.cancel()
            upstream.send.send_nowait(b"b")
            upstream.send.close()

    assert (first, second, upstream.runs) == ([b"a"], [b"a", b"b"], 1)


async def test_when_the_last_client_leaves_the_upstream_is_cancelled(engine: Engine) -> None:
    upstream = Upstream()
    received: list[bytes] = []
    with trio.fail_after(10):
        async with open_store(engine.where) as store:
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(follow, store, upstream.produce, received)
                upstream.send.send_nowait(b"a")
                await until(lambda: len(received) == 3)
                nursery.cancel_scope.cancel()

            await upstream.cancelled.wait()
            await until(lambda: store.flights.in_flight == 0)


async def test_a_request_after_the_end_starts_anew(engine: Engine) -> None:
    runs = 0

    async def produce(publish: Publish) -> None:
        nonlocal runs
        runs += 1
        await publish(b"%d" % runs)

    received: list[bytes] = []
    with trio.fail_after(10):
        async with open_store(engine.where) as store:
            for _ in range(3):
                await follow(store, produce, received)

    assert received == [b"1", b"2", b"3"]


async def test_a_request_that_comes_while_a_deserted_upstream_still_ends_starts_anew(engine: Engine) -> None:
    leaving, served = trio.Event(), trio.Event()

    async def linger(publish: Publish) -> None:
        try:
            await publish(b"old")
            await trio.sleep_forever()
        finally:
            leaving.set()
            with trio.move_on_after(5, shield=True):
                await served.wait()

    async def produce(publish: Publish) -> None:
        await publish(b"new")

    received: list[bytes] = []
    with trio.fail_after(10):
        async with open_store(engine.where) as store:
            async with store.flights.follow(KEY, linger) as batches:
                assert await anext(batches) == b"old"
            await leaving.wait()
            await follow(store, produce, received)
            served.set()

    assert received == [b"new"]


async def test_different_keys_fly_alone(engine: Engine) -> None:
    received: dict[bytes, list[bytes]] = {b"a": [], b"b": []}

    def producer(name: bytes) -> Producer:
        async def produce(publish: Publish) -> None:
            await publish(name)

        return produce

    with trio.fail_after(10):
        async with open_store(engine.where) as store, trio.open_nursery() as nursery:
            for name, into in received.items():
                nursery.start_soon(follow, store, producer(name), into, name)

    assert received == {b"a": [b"a"], b"b": [b"b"]}


@pytest.mark.parametrize("batches", [[], [b"a", b"b"]])
async def test_an_upstream_that_fails_is_a_lost_flight_for_all(
    engine: Engine, batches: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")
    going = trio.Event()
    lost: list[list[bytes]] = []

    async def produce(publish: Publish) -> None:
        for batch in batches:
            await publish(batch)
        await going.wait()
        raise UpstreamStalledError.__new__(UpstreamStalledError)

    async def client(store: Store) -> None:
        received: list[bytes] = []
        with pytest.raises(FlightLostError):
            await follow(store, produce, received)
        lost.append(received)

    with trio.fail_after(10):
        async with open_store(engine.where) as store, trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(client, store)
            await trio.testing.wait_all_tasks_blocked(0.05)
            going.set()

    assert lost == [batches] * 3
    assert [record.getMessage() for record in caplog.records] == ["flight_lost"]


async def test_a_defect_of_a_producer_ends_the_stores_block(engine: Engine) -> None:
    async def produce(_publish: Publish) -> None:
        raise ZeroDivisionError

    async def serve() -> None:
        async with open_store(engine.where) as store:
            with suppress(FlightLostError):
                await follow(store, produce, [])
            await trio.sleep_forever()

    with trio.fail_after(10), pytest.raises(ZeroDivisionError):
        await serve()


async def test_the_end_of_the_store_cancels_what_is_in_the_air(engine: Engine) -> None:
    upstream = Upstream()
    with trio.fail_after(10):
        async with open_store(engine.where) as store, store.flights.follow(KEY, upstream.produce):
            await until(lambda: upstream.runs == 1)

    assert upstream.cancelled.is_set()


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


async def test_beyond_the_limit_the_upstream_waits_for_the_slowest_follower(nursery: trio.Nursery) -> None:
    flight = Flight(max_bytes=300)
    log: list[int] = []
    with flight.joined() as slow, flight.joined() as fast:
        nursery.start_soon(publish_all, flight, [100] * 4, log)
        await trio.testing.wait_all_tasks_blocked()
        assert [await anext(fast) for _ in range(3)] == [b"x" * 100] * 3
        await trio.testing.wait_all_tasks_blocked()
        waiting = list(log)

        for _ in range(2):
            await anext(slow)
        await trio.testing.wait_all_tasks_blocked()

        assert (waiting, log) == ([0, 1], [0, 1, 2, 3])
        assert [len(batch) async for batch in slow] == [100] * 2


async def test_a_slow_follower_that_leaves_lets_the_upstream_go_on(nursery: trio.Nursery) -> None:
    flight = Flight(max_bytes=300)
    log: list[int] = []
    with flight.joined():
        nursery.start_soon(publish_all, flight, [100] * 4, log)
        await trio.testing.wait_all_tasks_blocked()
        waiting = list(log)
    await trio.testing.wait_all_tasks_blocked()

    assert (waiting, log) == ([0, 1], [0, 1, 2, 3])


@pytest.mark.parametrize("end", ["finished", "lost"])
async def test_after_the_end_all_that_was_published_is_still_read(end: str) -> None:
    flight = Flight()
    received = []
    with flight.joined() as cursor:
        await flight.publish(b"a")
        finish: dict[str, Callable[[], Awaitable[None] | None]] = {
            "finished": flight.finish,
            "lost": lambda: flight.lose(FlightLostError("gone")),
        }
        finish[end]()
        flight.lose(FlightLostError("too late to matter"))
        received.append(await anext(cursor))
        with pytest.raises((StopAsyncIteration, FlightLostError)) as ending:
            await anext(cursor)

    assert received == [b"a"]
    assert (ending.type, str(ending.value)) == (
        (StopAsyncIteration, "") if end == "finished" else (FlightLostError, "gone")
    )
