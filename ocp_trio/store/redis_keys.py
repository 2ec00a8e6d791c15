"""Keep keys and quotas in Redis: each change is one script, and so one step for all instances."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from ocp_trio.errors import InvalidApiKeyError
from ocp_trio.store import key_secrets
from ocp_trio.store.records import PERIODS, Allowance, ApiKey, Charge, NewKey, Period, Quota, Verdict
from ocp_trio.store.redis_link import RedisLink, RedisScript
from ocp_trio.store.rows import from_milliseconds, milliseconds
from ocp_trio.store.windows import allowances, refusal, windows_at

__all__ = ["RedisKeys", "RedisQuotas"]

KEY: Final = "ocp:key:"
"""Before a key's id: a hash of its fields."""
IDS: Final = "ocp:keys"
"""A list of all ids, the oldest first."""
NAMES: Final = "ocp:keys:names"
"""Name to id of the newest key with that name."""
HASHES: Final = "ocp:keys:hashes"
"""Hash of a secret to id."""
USED: Final = "ocp:quota:"
"""Before key, period and window: a counter."""
KEPT: Final = 86_400
"""Seconds that a counter outlives its window, for instances whose clocks differ, and for refunds."""

_CREATE = RedisScript(
    script="""
local names, hashes, ids, name, id, hash = KEYS[1], KEYS[2], KEYS[3], ARGV[2], ARGV[3], ARGV[4]
local holder = redis.call('HGET', names, name)
if holder and redis.call('HGET', ARGV[1] .. holder, 'revoked') == '0' then return 0 end
if redis.call('EXISTS', ARGV[1] .. name) == 1 then return 0 end
redis.call('HSET', names, name, id)
redis.call('HSET', hashes, hash, id)
redis.call('RPUSH', ids, id)
redis.call('HSET', ARGV[1] .. id, 'revoked', '0', 'hash', hash, 'name', name, unpack(ARGV, 5))
return 1
"""
)
_LIST = RedisScript(
    script="""
local found = {}
for i, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    found[i] = {id, redis.call('HGETALL', ARGV[1] .. id)}
end
return found
"""
)
_FIND = RedisScript(
    script="""
local id = ARGV[2]
if redis.call('EXISTS', ARGV[1] .. id) == 0 then id = redis.call('HGET', KEYS[1], id) end
if not id then return false end
if ARGV[3] then redis.call('HSET', ARGV[1] .. id, unpack(ARGV, 3)) end
return {id, redis.call('HGETALL', ARGV[1] .. id)}
"""
)
_COUNT = RedisScript(
    script="""
local key = redis.call('HMGET', KEYS[1], 'revoked', 'daily', 'weekly', 'monthly')
local used = redis.call('MGET', KEYS[2], KEYS[3], KEYS[4])
local spent = key[1] ~= '0'
for i = 1, 3 do
    local limit = tonumber(key[i + 1])
    used[i] = tonumber(used[i] or 0)
    spent = spent or (limit and used[i] >= limit)
end
if not spent and ARGV[1] == 'charge' then
    for i = 1, 3 do
        redis.call('INCR', KEYS[i + 1])
        redis.call('EXPIRE', KEYS[i + 1], ARGV[i + 1])
    end
end
return {key[1], key[2], key[3], key[4], used[1], used[2], used[3]}
"""
)
_DISCOUNT = RedisScript(
    script="""
for i = 1, 3 do
    if tonumber(redis.call('GET', KEYS[i]) or 0) > 0 then redis.call('DECR', KEYS[i]) end
end
"""
)


class RedisKeys:
    """API keys; described by the protocol `Keys`.

    Args:
        link: The Redis.
        now: Tells the time.
    """

    def __init__(self, link: RedisLink, now: Callable[[], datetime]) -> None:
        self._link = link
        self._now = now

    async def create(self, name: str, quota: Quota = Quota()) -> NewKey:  # noqa: B008 (immutable)
        """Make a key."""
        key_secrets.check_name(name)
        secret = key_secrets.make_secret()
        created = milliseconds(self._now())
        preview = key_secrets.preview(secret)
        key = ApiKey(key_secrets.make_id(), preview, name, from_milliseconds(created), revoked=False, quota=quota)
        hashed = key_secrets.hash_secret(secret)
        fixed = (name, key.id, hashed, "preview", preview, "created_at", created)
        if not await self._link.run(_CREATE, [NAMES, HASHES, IDS], KEY, *fixed, *_limits(quota)):
            raise key_secrets.name_taken()
        return NewKey(key, secret)

    async def list(self) -> list[ApiKey]:
        """Return all keys, the oldest first."""
        return [_key(found) for found in await self._link.run(_LIST, [IDS], KEY)]

    async def find(self, id_or_name: str) -> ApiKey | None:
        """Return a key."""
        return await self._find(NAMES, key_secrets.searchable(id_or_name))

    async def authenticate(self, secret: str) -> ApiKey | None:
        """Return the key whose secret this is."""
        wanted = key_secrets.hash_secret(secret)
        found = await self._link.run(_FIND, [HASHES], KEY, wanted)
        if not found or not key_secrets.same_hash(_fields(found[1])["hash"], wanted):
            return None
        key = _key(found)
        return None if key.revoked else key

    async def revoke(self, id_or_name: str) -> ApiKey | None:
        """Take a key out of service for good."""
        return await self._find(NAMES, key_secrets.searchable(id_or_name), "revoked", "1")

    async def set_quota(self, id_or_name: str, quota: Quota) -> ApiKey | None:
        """Replace a key's quota."""
        return await self._find(NAMES, key_secrets.searchable(id_or_name), *_limits(quota))

    async def _find(self, index: str, text: str, *changes: str | int) -> ApiKey | None:
        found = await self._link.run(_FIND, [index], KEY, text, *changes)
        return _key(found) if found else None


class RedisQuotas:
    """Requests counted by key; described by the protocol `Quotas`.

    Args:
        link: The Redis.
        now: Tells the time.
    """

    def __init__(self, link: RedisLink, now: Callable[[], datetime]) -> None:
        self._link = link
        self._now = now

    async def charge(self, key_id: str) -> Verdict:
        """Count one request in all three windows, or in none."""
        now = self._now()
        revoked, quota, used = await self._count(key_id, now, "charge")
        if revoked is not False:
            raise InvalidApiKeyError("the key is not in service")
        return refusal(quota, used, now) or Charge(key_id, now)

    async def refund(self, charge: Charge) -> None:
        """Take back a charge."""
        await self._link.run(_DISCOUNT, _counters(charge.key_id, charge.at))

    async def allowances(self, key_id: str) -> dict[Period, Allowance] | None:
        """Return limits and use of a key."""
        now = self._now()
        revoked, quota, used = await self._count(key_id, now, "look")
        return None if revoked is None else allowances(quota, used, now)

    async def _count(self, key_id: str, now: datetime, what: str) -> tuple[bool | None, Quota, dict[Period, int]]:
        """Return whether a key is revoked (None: there is none), its quota, and what had been used."""
        kept = [int((window.end - now).total_seconds()) + KEPT for window in windows_at(now).values()]
        found = await self._link.run(_COUNT, [KEY + key_id, *_counters(key_id, now)], what, *kept)
        revoked = None if found[0] is None else found[0] == b"1"
        limits = [int(limit) if limit else None for limit in found[1:4]]
        return revoked, Quota(*limits), dict(zip(PERIODS, found[4:], strict=True))


def _counters(key_id: str, now: datetime) -> list[str]:
    return [f"{USED}{key_id}:{period}:{window.name}" for period, window in windows_at(now).items()]


def _limits(quota: Quota) -> tuple[str, ...]:
    """Return a quota as fields and values; an empty one is no limit."""
    limits = [(period, quota.limit(period)) for period in PERIODS]
    return tuple(text for period, limit in limits for text in (period, "" if limit is None else str(limit)))


def _fields(flat: Sequence[bytes]) -> dict[str, str]:
    texts = [text.decode() for text in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _key(found: tuple[bytes, Sequence[bytes]]) -> ApiKey:
    key_id, fields = found[0].decode(), _fields(found[1])
    quota = Quota(*(int(fields[period]) if fields[period] else None for period in PERIODS))
    created = from_milliseconds(int(fields["created_at"]))
    return ApiKey(key_id, fields["preview"], fields["name"], created, fields["revoked"] == "1", quota)
