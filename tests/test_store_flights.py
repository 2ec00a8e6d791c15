"""Equal requests at once share one run, and no client takes the others along."""

import logging
from contextlib import suppress

import pytest
import trio
import trio.testing
from store_engines import Engine
from store_upstream import KEY, Upstream, follow, until

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.store import FlightLostError, Producer, Publish, Store, open_store

pytest_plugins = ["store_fixtures"]


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
