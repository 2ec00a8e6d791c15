"""Two instances on one Redis fly equal requests once, and neither takes the other down with it."""

import logging
import signal
import subprocess
import sys

import pytest
import trio
from store_engines import RedisServer
from test_store_flights import KEY, Upstream, follow, until

from ocp_trio.store import FlightLostError, Publish, Store, open_store
from ocp_trio.store.redis_flights import LEASE

pytest_plugins = ["store_fixtures"]

PATIENCE = 5 * LEASE
"""Seconds within which the death of an instance has been noticed, with room for a busy machine."""

LEADER = f"""
import sys, trio
from ocp_trio.store import open_store
async def produce(publish):
    for batch in sys.argv[2:]:
        await publish(batch.encode())
    await trio.sleep_forever()
async def main():
    async with open_store(sys.argv[1]) as store, store.flights.follow({KEY!r}, produce) as batches:
        print("leading", flush=True)
        async for batch in batches:
            print(batch.decode(), flush=True)
trio.run(main)
"""


def start_leader(where: str, *batches: str) -> "subprocess.Popen[bytes]":
    """Start an instance that leads a flight without end, and return once it has published its batches."""
    leader = subprocess.Popen([sys.executable, "-c", LEADER, where, *batches], stdout=subprocess.PIPE)
    assert leader.stdout is not None
    for word in ("leading", *batches):
        assert leader.stdout.readline().strip() == word.encode()
    return leader


async def wait_for_lease(redis: RedisServer) -> None:
    await until(lambda: b"ocp:flight" in redis.ask("KEYS", "ocp:flight:*"))


async def test_one_upstream_runs_for_the_followers_of_both(redis: RedisServer) -> None:
    upstream = Upstream()
    received: list[list[bytes]] = [[] for _ in range(6)]
    with trio.fail_after(20):
        async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
            for number, into in enumerate(received):
                nursery.start_soon(follow, (one, other)[number % 2], upstream.produce, into)
                upstream.send.send_nowait(b"%d" % number)
                await until(lambda into=into, number=number: len(into) > number)  # type: ignore[misc]
            upstream.send.close()

    assert received == [[b"0", b"1", b"2", b"3", b"4", b"5"]] * 6
    assert upstream.runs == 1


async def test_a_burst_reaches_the_other_instance_whole_and_in_order(redis: RedisServer) -> None:
    burst = [b"%d" % number for number in range(5000)]

    async def produce(publish: Publish) -> None:
        for batch in burst:
            await publish(batch)

    received: list[list[bytes]] = [[], []]
    with trio.fail_after(20):
        async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
            nursery.start_soon(follow, one, produce, received[0])
            await wait_for_lease(redis)
            nursery.start_soon(follow, other, produce, received[1])

    assert received == [burst, burst]


async def test_the_leading_instances_own_clients_may_all_leave(redis: RedisServer) -> None:
    upstream = Upstream()
    here: list[bytes] = []
    there: list[bytes] = []
    with trio.fail_after(20):
        async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
            async with one.flights.follow(KEY, upstream.produce) as batches:
                upstream.send.send_nowait(b"a")
                here.append(await anext(batches))
                nursery.start_soon(follow, other, upstream.produce, there)
                await until(lambda: there == [b"a"])
            upstream.send.send_nowait(b"b")
            await until(lambda: there == [b"a", b"b"])
            upstream.send.close()

    assert (here, there, upstream.runs) == ([b"a"], [b"a", b"b"], 1)


async def test_when_the_followers_elsewhere_leave_as_well_the_upstream_is_cancelled(redis: RedisServer) -> None:
    upstream = Upstream()
    there: list[bytes] = []
    with trio.fail_after(PATIENCE):
        async with open_store(redis.where) as one, open_store(redis.where) as other, trio.open_nursery() as nursery:
            async with one.flights.follow(KEY, upstream.produce) as batches:
                upstream.send.send_nowait(b"a")
                await anext(batches)
                nursery.start_soon(follow, other, upstream.produce, there)
                await until(lambda: there == [b"a"])
            nursery.cancel_scope.cancel()

            with trio.CancelScope(shield=True):
                await upstream.cancelled.wait()
                await until(lambda: one.flights.in_flight == other.flights.in_flight == 0)


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
                await until(lambda: b":2\r\n" in redis.ask("ZCARD", followers(redis)))
                leader.send_signal(signal.SIGKILL)

                upstream.send.send_nowait(b"a")
                await until(lambda: received == [[b"a"], [b"a"]])
                upstream.send.close()
    finally:
        end(leader)

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
        end(leader)

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


async def test_a_redis_that_dies_under_a_flight_leaves_it_to_its_own_instance(mortal_redis: RedisServer) -> None:
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
            upstream.send.send_nowait(b"b")
            upstream.send.close()

    assert (here, there, upstream.runs) == ([b"a", b"b"], [b"a"], 1)


async def test_nothing_of_a_finished_flight_stays_in_redis_for_ever(redis: RedisServer) -> None:
    received: list[bytes] = []

    async def produce(publish: Publish) -> None:
        await publish(b"a")

    with trio.fail_after(20):
        async with open_store(redis.where) as store:
            await follow(store, produce, received)
            await until(lambda: store.flights.in_flight == 0)

    names = redis.ask("KEYS", "ocp:flight:*").split()[2::2]
    assert len(names) == 1
    assert 0 < int(redis.ask("TTL", names[0].decode())[1:]) <= 60


def followers(redis: RedisServer) -> str:
    """Return the set of instances that follow, or a name of nothing."""
    names = [name.decode() for name in redis.ask("KEYS", "ocp:flight:*:followers").split()]
    return next((name for name in names if name.endswith(":followers")), "nothing")


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()
