"""Keep answers in Redis, within one bound for all instances."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from ocp_trio.store.records import CacheStats
from ocp_trio.store.redis_link import RedisLink, RedisScript
from ocp_trio.store.rows import milliseconds

__all__ = ["RedisCache"]

KEYS: Final = ("ocp:cache", "ocp:cache:used", "ocp:cache:expires", "ocp:cache:counts")
"""A hash of the values; their keys by the order of their last use, and by the end of their time; three counts."""

_COMMON = """
local values, used, expires, counts = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local function drop(key)
    redis.call('HINCRBY', counts, 'bytes', -(#key + redis.call('HSTRLEN', values, key)))
    redis.call('HDEL', values, key)
    redis.call('ZREM', used, key)
    redis.call('ZREM', expires, key)
end
local function count(name)
    return tonumber(redis.call('HGET', counts, name) or 0)
end
local function use(key)
    redis.call('ZADD', used, redis.call('HINCRBY', counts, 'uses', 1), key)
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', expires, '-inf', ARGV[1])) do
    drop(key)
end
"""
_GET = RedisScript(
    script=_COMMON
    + """
local value = redis.call('HGET', values, ARGV[2])
if value then
    redis.call('HINCRBY', counts, 'hits', 1)
    use(ARGV[2])
end
return value
"""
)
_PUT = RedisScript(
    script=_COMMON
    + """
local key, value, ends, limit = ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('HEXISTS', values, key) == 1 then drop(key) end
local size = #key + #value
if size > limit or ends <= tonumber(ARGV[1]) then return end
while count('bytes') + size > limit do
    local oldest = redis.call('ZRANGE', used, 0, 0)[1]
    if oldest then drop(oldest) else redis.call('DEL', values, expires, counts) end
end
redis.call('HSET', values, key, value)
redis.call('HINCRBY', counts, 'bytes', size)
redis.call('ZADD', expires, ends, key)
use(key)
"""
)
_STATS = RedisScript(script=_COMMON + "return {redis.call('HLEN', values), count('hits'), count('bytes')}")
_CLEAR = RedisScript(
    script=_COMMON
    + """
local entries = redis.call('HLEN', values)
redis.call('DEL', values, used, expires, counts)
return entries
"""
)


class RedisCache:
    """A cache of all instances; described by the protocol `Cache`.

    Args:
        link: The Redis.
        max_bytes: Bytes of keys and values together.
        now: Tells the time.
    """

    def __init__(self, link: RedisLink, max_bytes: int, now: Callable[[], datetime]) -> None:
        self._link = link
        self._max_bytes = max_bytes
        self._now = now

    async def get(self, key: bytes) -> bytes | None:
        """Return what was put; None where it is gone."""
        value: bytes | None = await self._link.run(_GET, KEYS, self._time(), key)
        return value

    async def put(self, key: bytes, value: bytes, ttl: float) -> None:
        """Keep a value for ``ttl`` seconds at most."""
        now = self._time()
        await self._link.run(_PUT, KEYS, now, key, value, now + int(ttl * 1000), self._max_bytes)

    async def stats(self) -> CacheStats:
        """Return what is there."""
        return CacheStats(*await self._link.run(_STATS, KEYS, self._time()))

    async def clear(self) -> int:
        """Drop everything."""
        count: int = await self._link.run(_CLEAR, KEYS, self._time())
        return count

    def _time(self) -> int:
        return milliseconds(self._now())
