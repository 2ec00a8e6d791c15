"""Two instances on one Redis fly equal requests once, and neither takes the other down with it."""

import trio
from store_engines import RedisServer
from store_upstream import KEY, PATIENCE, Upstream, follow, stream, until, wait_for_lease

from ocp_trio.store import Publish, open_store

pytest_plugins = ["store_fixtures"]


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


async def test_nothing_of_a_finished_flight_stays_in_redis_for_ever(redis: RedisServer) -> None:
    received: list[bytes] = []

    async def produce(publish: Publish) -> None:
        await publish(b"a")

    with trio.fail_after(20):
        async with open_store(redis.where) as store:
            await follow(store, produce, received)
            await until(lambda: store.flights.in_flight == 0)

    assert redis.ask("KEYS", "ocp:flight:*").count(b"ocp:flight:") == 1
    assert 0 < int(redis.ask("TTL", stream(redis))[1:]) <= 60
