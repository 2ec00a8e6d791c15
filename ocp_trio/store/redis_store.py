"""Put the parts of a store in Redis together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial

from ocp_trio.store.flights import open_flights
from ocp_trio.store.interface import Store
from ocp_trio.store.outages import Outages
from ocp_trio.store.redis_cache import RedisCache
from ocp_trio.store.redis_flights import RENEWAL, RedisFlights
from ocp_trio.store.redis_keys import RedisKeys, RedisQuotas
from ocp_trio.store.redis_link import RedisLink, open_link
from ocp_trio.store.redis_usage import RedisUsage

__all__ = ["open_redis_store"]


@asynccontextmanager
async def open_redis_store(
    address: str, *, timeout: float, cache_bytes: int, keep: timedelta, now: Callable[[], datetime]
) -> AsyncIterator[Store]:
    """Use a Redis for the length of a block; the arguments are those of `open_store`."""
    outages = Outages("redis")
    # A connection for each flight that another instance leads: the read that waits for its batches occupies it.
    open_reader = partial(open_link, address, outages, timeout=timeout, waiting=RENEWAL, connections=1)
    async with (
        open_link(address, outages, timeout=timeout) as link,
        open_flights(RedisFlights(link, open_reader).fly) as flights,
    ):
        yield Store(
            keys=RedisKeys(link, now),
            quotas=RedisQuotas(link, now),
            usage=RedisUsage(link, now, keep),
            cache=RedisCache(link, cache_bytes, now),
            flights=flights,
            state=outages,
            ping=partial(_ping, link),
        )


async def _ping(link: RedisLink) -> None:
    # Refused, like all that matters, by a Redis that may only be read or whose memory is full.
    await link.call(lambda client: client.set("ocp:ping", b"", px=1))
