"""Open the store that a setting names."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from ocp_trio.errors import SettingError
from ocp_trio.store.flights import fly_alone, open_flights
from ocp_trio.store.interface import Store
from ocp_trio.store.memory_cache import MemoryCache
from ocp_trio.store.outages import Outages
from ocp_trio.store.sqlite_keys import SqliteKeys, SqliteQuotas
from ocp_trio.store.sqlite_lanes import open_lanes
from ocp_trio.store.sqlite_schema import connect, sqlite_path
from ocp_trio.store.sqlite_usage import SqliteUsage

__all__ = ["CACHE_BYTES", "TIMEOUT", "USAGE_DAYS", "open_store"]

TIMEOUT: Final = 2.0
"""Seconds within which a call has returned or failed."""
CACHE_BYTES: Final = 64 * 2**20
"""Bytes of all cached answers together."""
USAGE_DAYS: Final = 400
"""Days that rows of usage are kept: a year can be compared with the one before it, month by month."""
REDIS_SCHEMES: Final = ("redis://", "rediss://", "unix://")
"""How the address of a Redis, or a Valkey, begins."""


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@asynccontextmanager
async def open_store(
    where: str | Path = "",
    *,
    timeout: float = TIMEOUT,
    cache_bytes: int = CACHE_BYTES,
    usage_days: int = USAGE_DAYS,
    now: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Store]:
    """Open a store for the length of a block. An engine that is down does not matter yet: see `Store.ping`.

    Args:
        where: ``redis://…``, ``rediss://…`` (with TLS) or ``unix://…`` (a socket) for a Redis; a path for a SQLite
            file; ``sqlite`` or nothing for the one in ``~/.ocp``.
        timeout: Seconds within which a call has returned or raised `StoreUnavailableError`.
        cache_bytes: Bytes of all cached answers together.
        usage_days: Days that rows of usage are kept.
        now: Tells the time, in UTC; for tests.

    Cancellation: at the end of the block flights are cancelled, then what was written is made durable, shielded, within
    ``timeout`` seconds.

    Raises:
        SettingError: ``where`` names no store, or its client is not installed.
    """
    keep = timedelta(days=usage_days)
    text = str(where)
    if text.startswith(REDIS_SCHEMES):
        try:
            # Whoever keeps SQLite neither needs this client nor waits for its import.
            from ocp_trio.store.redis_store import open_redis_store  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise SettingError("OCP_STORE", _scheme(text), "needs coredis: pip install 'ocp-trio[redis]'") from error
        opening = open_redis_store(text, timeout=timeout, cache_bytes=cache_bytes, keep=keep, now=now)
    elif "://" in text:
        raise SettingError("OCP_STORE", _scheme(text), "a path, redis://, rediss:// or unix:// is expected")
    else:
        path = sqlite_path(text)
        opening = _open_sqlite_store(path, timeout=timeout, cache_bytes=cache_bytes, keep=keep, now=now)
    async with opening as store:
        yield store


def _scheme(address: str) -> str:
    """Return the only part of an address that may be shown: the rest may hold a password."""
    return f"{address.partition('://')[0]}://…"


@asynccontextmanager
async def _open_sqlite_store(
    path: Path, *, timeout: float, cache_bytes: int, keep: timedelta, now: Callable[[], datetime]
) -> AsyncIterator[Store]:
    # Half of it, so that a lock is told from a disk that does not answer.
    connecting = partial(connect, path, busy_timeout=timeout / 2)
    outages = Outages("sqlite")
    async with (
        open_lanes(connecting, timeout=timeout, outages=outages) as lanes,
        open_flights(fly_alone) as flights,
    ):
        yield Store(
            keys=SqliteKeys(lanes, now),
            quotas=SqliteQuotas(lanes, now),
            usage=SqliteUsage(lanes, now, keep),
            cache=MemoryCache(cache_bytes, now),
            flights=flights,
            state=outages,
            ping=partial(lanes.write, lambda _connection: None),
        )
