"""Whoever dies under a shared run takes down what depends on it, and nothing else."""

import logging
import signal

import pytest
import trio
from store_engines import RedisServer
from store_upstream import (
    PATIENCE,
    Upstream,
    end_leader,
    follow,
    lease,
    start_leader,
    stream,
    until,
    wait_for_lease,
)

from ocp_trio.store import FlightLostError, Publish, Store, open_store, redis_flights

pytest_plugins = ["store_fixtures"]


async def test_a_leader_killed_before_its_first_batch_is_succeeded(redis: RedisServer) -> None:
    upstream = Upstream()
    received: list[list[bytes]] = [[], []]
    leader = start_leader(redis.where)
    try:
        with trio.fail_after(PATIENCE):
            async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
                await wait_for_lease(redis)
                for store, into in zip((one, other), received, strict=True):
                    nursery.start_soon(follow, store, upstream.produce, into)
                await until(lambda: b":2\r\n" in redis.ask("ZCARD", f"{lease()}:followers"))
                leader.send_signal(signal.SIGKILL)

                upstream.send.send_nowait(b"a")
                await until(lambda: received == [[b"a"], [b"a"]])
                upstream.send.close()
    finally:
        end_leader(leader)

    assert upstream.runs == 1


async def test_a_leader_killed_later_is_a_lost_flight_elsewhere(redis: RedisServer) -> None:
    upstream = Upstream()
    received: list[bytes] = []
    lost = trio.Event()
    leader = start_leader(redis.where, "a", "b")

    async def client(store: Store) -> None:
        with pytest.raises(FlightLostError):
            await follow(store, upstream.produce, received)
        lost.set()

    try:
        with trio.fail_after(PATIENCE):
            async with open_store(redis.where) as store, trio.open_nursery() as nursery:
                nursery.start_soon(client, store)
                await until(lambda: received == [b"a", b"b"])
                leader.send_signal(signal.SIGKILL)
                await lost.wait()
    finally:
        end_leader(leader)

    assert (received, upstream.runs) == ([b"a", b"b"], 0)


async def test_an_upstream_that_fails_is_lost_for_the_other_instance_too(redis: RedisServer) -> None:
    going = trio.Event()
    received: list[bytes] = []

    async def fail(publish: Publish) -> None:
        await publish(b"a")
        await going.wait()
        raise FlightLostError("upstream failed")

    async def client(store: Store) -> None:
        with pytest.raises(FlightLostError):
            await follow(store, fail, received)

    with trio.fail_after(20):
        async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
            nursery.start_soon(client, one)
            await until(lambda: len(received) == 1)
            nursery.start_soon(client, other)
            await until(lambda: len(received) == 2)
            going.set()

    assert received == [b"a", b"a"]


async def test_a_redis_that_is_down_costs_the_sharing_and_not_the_answer(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")
    upstream = Upstream()
    received: list[bytes] = []
    with trio.fail_after(20):
        async with open_store(redis.where, timeout=0.4) as store, trio.open_nursery() as nursery:
            with redis.outage():
                nursery.start_soon(follow, store, upstream.produce, received)
                upstream.send.send_nowait(b"a")
                await until(lambda: received == [b"a"])
                upstream.send.close()

    assert (received, upstream.runs) == ([b"a"], 1)
    assert "flight_unshared" in caplog.messages


async def test_a_redis_that_dies_under_a_flight_leaves_it_to_its_own_instance(
    mortal_redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")
    upstream = Upstream()
    here: list[bytes] = []
    there: list[bytes] = []
    lost = trio.Event()

    async def elsewhere(store: Store) -> None:
        with pytest.raises(FlightLostError):
            await follow(store, upstream.produce, there)
        lost.set()

    with trio.fail_after(20):
        async with (
            open_store(mortal_redis.where) as one,
            open_store(mortal_redis.where) as other,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(follow, one, upstream.produce, here)
            upstream.send.send_nowait(b"a")
            await until(lambda: here == [b"a"])
            nursery.start_soon(elsewhere, other)
            await until(lambda: there == [b"a"])

            mortal_redis.kill()
            await lost.wait()
            await until(lambda: "flight_unshared" in caplog.messages)
            upstream.send.send_nowait(b"b")
            upstream.send.close()

    assert (here, there, upstream.runs) == ([b"a", b"b"], [b"a"], 1)


async def test_a_flight_too_long_for_redis_goes_on_where_it_was_started(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_flights, "MAX_STREAM", 10)
    upstream = Upstream()
    here: list[bytes] = []
    there: list[bytes] = []
    lost = trio.Event()

    async def elsewhere(store: Store) -> None:
        with pytest.raises(FlightLostError):
            await follow(store, upstream.produce, there)
        lost.set()

    with trio.fail_after(20):
        async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
            nursery.start_soon(follow, one, upstream.produce, here)
            upstream.send.send_nowait(b"a")
            await until(lambda: here == [b"a"])
            nursery.start_soon(elsewhere, other)
            await until(lambda: there == [b"a"])
            upstream.send.send_nowait(b"x" * 10)
            await lost.wait()
            upstream.send.send_nowait(b"b")
            upstream.send.close()

    assert (here, upstream.runs) == ([b"a", b"x" * 10, b"b"], 1)


async def test_a_leader_that_lost_its_lease_goes_on_for_its_own_clients(redis: RedisServer) -> None:
    upstream = Upstream()
    received: list[bytes] = []
    with trio.fail_after(20):
        async with open_store(redis.where) as store, trio.open_nursery() as nursery:
            nursery.start_soon(follow, store, upstream.produce, received)
            await wait_for_lease(redis)
            redis.ask("SET", lease(), "another")
            upstream.send.send_nowait(b"a")
            await until(lambda: b"lost" in redis.ask("XREVRANGE", stream(redis), "+", "-", "COUNT", "1"))
            upstream.send.send_nowait(b"b")
            upstream.send.close()

    assert (received, upstream.runs) == ([b"a", b"b"], 1)
    assert redis.ask("GET", lease()).split()[-1] == b"another"
