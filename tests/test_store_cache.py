"""The cache forgets in time, and the least recently used first, and never holds more than its bound."""

import pytest
import trio
from store_engines import Clock, Engine

from ocp_trio.store import CacheStats, open_store

pytest_plugins = ["store_fixtures"]

KEY = b"\0key\xff"


async def test_what_was_put_is_found_byte_for_byte(engine: Engine) -> None:
    value = bytes(range(256)) * 1000
    async with open_store(engine.where) as store:
        await store.cache.put(KEY, value, 60)
        await store.cache.put(b"", b"", 60)

        assert await store.cache.get(KEY) == value
        assert await store.cache.get(b"") == b""
        assert await store.cache.get(b"other") is None


async def test_an_entry_is_gone_when_its_time_is_over(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        await store.cache.put(KEY, b"value", 1.5)
        found = []
        for seconds in (1.499, 0.001):
            clock.advance(seconds=seconds)
            found.append(await store.cache.get(KEY))

        assert found == [b"value", None]
        assert await store.cache.stats() == CacheStats(entries=0, hits=1, size_bytes=0)


async def test_what_is_over_does_not_count_against_the_bound(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock, cache_bytes=30) as store:
        await store.cache.put(b"a", b"nine byte", 100)
        await store.cache.put(b"b", b"nineteen bytes long", 1)
        clock.advance(seconds=2)
        await store.cache.put(b"c", b"nineteen bytes long", 100)

        assert await store.cache.get(b"a") == b"nine byte"
        assert (await store.cache.stats()).entries == 2


@pytest.mark.parametrize("ttl", [0, -1])
async def test_without_time_nothing_is_kept(engine: Engine, ttl: float) -> None:
    async with open_store(engine.where) as store:
        await store.cache.put(KEY, b"old", 60)
        await store.cache.put(KEY, b"new", ttl)

        assert await store.cache.get(KEY) is None


async def test_the_least_recently_used_entry_goes_first(engine: Engine) -> None:
    async with open_store(engine.where, cache_bytes=30) as store:
        for key in (b"a", b"b", b"c"):
            await store.cache.put(key, b"nine byte", 60)
        await store.cache.get(b"a")

        await store.cache.put(b"d", b"nine byte", 60)

        assert [await store.cache.get(key) is not None for key in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
        assert (await store.cache.stats()).size_bytes == 30


async def test_a_value_larger_than_the_cache_is_not_kept_and_drops_nobody_else(engine: Engine) -> None:
    async with open_store(engine.where, cache_bytes=30) as store:
        await store.cache.put(b"a", b"nine byte", 60)
        await store.cache.put(b"b", b"x" * 30, 60)

        assert await store.cache.get(b"b") is None
        assert await store.cache.get(b"a") == b"nine byte"


async def test_an_entry_that_is_replaced_counts_once(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        for size in (100, 10, 50):
            await store.cache.put(b"k", b"x" * size, 60)

        assert await store.cache.stats() == CacheStats(entries=1, hits=0, size_bytes=51)


async def test_clearing_tells_how_many_there_were(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        for number in range(3):
            await store.cache.put(bytes([number]), b"x", 60)
        await store.cache.get(b"\0")

        assert (await store.cache.stats()).hits == 1
        assert [await store.cache.clear(), await store.cache.clear()] == [3, 0]
        assert await store.cache.stats() == CacheStats(0, 0, 0)


async def test_many_at_once_keep_the_bound(engine: Engine) -> None:
    async with open_store(engine.where, cache_bytes=1000) as store:
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(store.cache.put, f"{number:04}".encode(), b"x" * (number % 50), 60)
        stats = await store.cache.stats()
        sizes = [len(value) for n in range(100) if (value := await store.cache.get(f"{n:04}".encode())) is not None]

    assert stats.size_bytes <= 1000
    assert (stats.entries, stats.size_bytes) == (len(sizes), sum(sizes) + 4 * len(sizes))


async def test_two_instances_share_one_cache_and_its_counts(redis: Engine) -> None:
    async with open_store(redis.where) as one, open_store(redis.where) as other:
        await one.cache.put(KEY, b"value", 60)

        assert await other.cache.get(KEY) == b"value"
        assert await one.cache.stats() == await other.cache.stats() == CacheStats(1, 1, 10)
        assert await other.cache.clear() == 1
        assert await one.cache.get(KEY) is None


async def test_a_redis_that_evicted_the_values_does_not_stop_the_cache(redis: Engine) -> None:
    async with open_store(redis.where, cache_bytes=100) as store:
        await store.cache.put(b"k", b"x" * 90, 60)
        redis.ask("DEL", "ocp:cache", "ocp:cache:used")  # type: ignore[attr-defined]

        await store.cache.put(b"m", b"x" * 90, 60)

        assert await store.cache.get(b"m") == b"x" * 90
