"""Keep answers in memory, bounded in bytes: those of one machine never touch its disk."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import trio

from ocp_trio.store.records import CacheStats

__all__ = ["MemoryCache"]


class _Entry(NamedTuple):
    value: bytes
    expires_at: datetime


class MemoryCache:
    """A cache of this process; described by the protocol `Cache`.

    Args:
        max_bytes: Bytes of keys and values together.
        now: Tells the time.
    """

    def __init__(self, max_bytes: int, now: Callable[[], datetime]) -> None:
        self._max_bytes = max_bytes
        self._now = now
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._size = 0
        self._hits = 0

    async def get(self, key: bytes) -> bytes | None:
        """Return what was put; None where it is gone."""
        await trio.lowlevel.checkpoint()
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at <= self._now():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        self._hits += 1
        return entry.value

    async def put(self, key: bytes, value: bytes, ttl: float) -> None:
        """Keep a value for ``ttl`` seconds at most."""
        await trio.lowlevel.checkpoint()
        self._drop(key)
        size = len(key) + len(value)
        if ttl <= 0 or size > self._max_bytes:
            return
        self._drop_expired()
        while self._size + size > self._max_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = _Entry(value, self._now() + timedelta(seconds=ttl))
        self._size += size

    async def stats(self) -> CacheStats:
        """Return what is there."""
        await trio.lowlevel.checkpoint()
        self._drop_expired()
        return CacheStats(len(self._entries), self._hits, self._size)

    async def clear(self) -> int:
        """Drop everything."""
        count = (await self.stats()).entries
        self._entries.clear()
        self._size = self._hits = 0
        return count

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= len(key) + len(entry.value)

    def _drop_expired(self) -> None:
        now = self._now()
        for key in [key for key, entry in self._entries.items() if entry.expires_at <= now]:
            self._drop(key)
