"""A store of which nothing leaves the process, for tests on the mock clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from ocp_trio.store import Store, UsageRow
from ocp_trio.store.flights import fly_alone, open_flights
from ocp_trio.store.memory_cache import MemoryCache
from ocp_trio.store.opening import utc_now
from ocp_trio.store.outages import Outages


class MemoryUsage:
    """Keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[UsageRow] = []

    async def record(self, row: UsageRow) -> None:
        self.rows.append(row)


async def _answer() -> None:
    return


@asynccontextmanager
async def open_memory_store(max_bytes: int = 2**21) -> AsyncIterator[Store]:
    """Keep cache, flights and usage in memory for the length of a block; there are no keys.

    Args:
        max_bytes: What a flight keeps for those who join later.
    """
    nothing = cast("Any", None)
    async with open_flights(fly_alone, max_bytes=max_bytes) as flights:
        yield Store(
            keys=nothing,
            quotas=nothing,
            usage=cast("Any", MemoryUsage()),
            cache=MemoryCache(2**20, utc_now),
            flights=flights,
            state=Outages("memory"),
            ping=_answer,
        )


def rows(store: Store) -> list[UsageRow]:
    """Return what a memory store was given."""
    found: list[UsageRow] = cast("Any", store.usage).rows
    return found
