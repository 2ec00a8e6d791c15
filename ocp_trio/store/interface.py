"""What a store promises, whichever engine keeps it.

Every call but `Flights.follow` ends within the store's timeout (2 seconds by default; in Redis each page of a report
has it), and raises `StoreUnavailableError` where the engine does not answer by then; the next call tries anew. What has
returned is durable. Whether a call that raised `StoreUnavailableError` has had its effect is not known.

Cancellation: a call that has begun is carried through, within its timeout, before the cancellation is seen: so that a
caller knows what has been done.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from ocp_trio.store.outages import Outages
from ocp_trio.store.records import Allowance, ApiKey, CacheStats, Charge, NewKey, Period, Quota, UsageRow, Verdict
from ocp_trio.store.reports import UsageReport

__all__ = ["Cache", "Flights", "Keys", "Producer", "Publish", "Quotas", "Store", "Usage"]

Publish: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Hands one batch to all followers of a flight. It waits only while all of them are far behind."""

Producer: TypeAlias = Callable[[Publish], Awaitable[None]]
"""Produces the whole of a flight, failures of its upstream included: they are batches like others."""


class Keys(Protocol):
    """API keys. Where one is named by its id or its name, an id goes first, and of one name the newest key."""

    async def create(self, name: str, quota: Quota = Quota()) -> NewKey:  # noqa: B008 (immutable)
        """Make a key. Its secret is in the result and nowhere else.

        Raises:
            InvalidRequestError: the name is unfit, or another key that is not revoked has it.
        """
        ...

    async def list(self) -> list[ApiKey]:
        """Return all keys, the oldest first, revoked ones included."""
        ...

    async def find(self, id_or_name: str) -> ApiKey | None:
        """Return a key."""
        ...

    async def authenticate(self, secret: str) -> ApiKey | None:
        """Return the key whose secret this is; None where there is none or it is revoked."""
        ...

    async def revoke(self, id_or_name: str) -> ApiKey | None:
        """Take a key out of service for good, and return it; None where there is none."""
        ...

    async def set_quota(self, id_or_name: str, quota: Quota) -> ApiKey | None:
        """Replace a key's quota, and return the key; None where there is none."""
        ...


class Quotas(Protocol):
    """Requests counted by key in calendar days, ISO weeks and months of UTC, whether a limit is set or not."""

    async def charge(self, key_id: str) -> Verdict:
        """Count one request in all three windows, or in none: exact for any number of callers and instances.

        SQLite syncs it with the request's row: a machine that loses its power may forget what has no row yet.

        Raises:
            InvalidApiKeyError: the key does not exist, or has been revoked meanwhile.
        """
        ...

    async def refund(self, charge: Charge) -> None:
        """Take back a charge, once, for a request that failed before it cost anything."""
        ...

    async def allowances(self, key_id: str) -> dict[Period, Allowance] | None:
        """Return limits and use of a key, the shortest window first; None where there is no such key."""
        ...


class Usage(Protocol):
    """One row per request."""

    async def record(self, row: UsageRow) -> None:
        """Keep a row. Recording it again changes nothing. Rows are dropped when they are older than the store keeps."""
        ...

    async def report(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        key_id: str | None = None,
    ) -> UsageReport:
        """Add up rows.

        Args:
            since: The earliest time that counts; None is the first row's.
            until: The earliest time that does not count any more; None is no end.
            limit: Rows that are returned as they are, the newest.
            key_id: The key whose rows count; None is all of them.
        """
        ...


class Cache(Protocol):
    """Answers, bounded in bytes: the least recently used one goes first."""

    async def get(self, key: bytes) -> bytes | None:
        """Return what was put; None where it is gone. A find counts as a hit."""
        ...

    async def put(self, key: bytes, value: bytes, ttl: float) -> None:
        """Keep a value for ``ttl`` seconds at most; not at all where that is 0 or it is larger than the whole cache."""
        ...

    async def stats(self) -> CacheStats:
        """Return what is there."""
        ...

    async def clear(self) -> int:
        """Drop everything, the count of hits included, and return how many entries there were."""
        ...


class Flights(Protocol):
    """Equal requests at once share one run of their upstream: a flight.

    A flight belongs to the store, not to the request that started it: its producer runs in a task of the store's own
    block. So a client that disconnects takes nobody along, the first one included. When nobody is left the producer is
    cancelled: at once, or, where another instance had followers, within a second.

    Where instances share a store, one of them runs the producer and the others follow it. If that one dies before any
    of its batches has reached another instance, one of the others runs its own producer instead; later than that, the
    followers there get `FlightLostError`. An engine that is down costs the sharing, never the answer.

    Memory: a flight keeps what it has published, up to a limit, for those that join later. Beyond the limit nobody
    joins any more, what all followers have is dropped, and `Publish` waits for the fastest of them. A follower that is
    farther behind that one than the limit gets `FlightLostError`: it stops nobody else.
    """

    @property
    def in_flight(self) -> int:
        """Flights that this instance runs or follows."""
        ...

    def follow(self, key: bytes, produce: Producer) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Follow the flight of ``key`` from its first batch on; start it where there is none.

        Args:
            key: What makes requests equal, the caller included.
            produce: Runs for as long as somebody follows, possibly longer than this block: it must not depend on
                anything of the request. What it raises, other than an `OcpError`, ends the store's block.

        Cancellation: leaving the block leaves the flight, at once where others follow it. The last to leave waits,
        shielded, until the producer is gone, within the producer's own bound and the store's timeout.

        Raises:
            FlightLostError: from the iterator; the flight ended without having been finished, or has left this follower
                behind.
        """
        ...


@dataclass(frozen=True, slots=True)
class Store:
    """All parts of a store; made by `open_store`."""

    keys: Keys
    quotas: Quotas
    usage: Usage
    cache: Cache
    flights: Flights
    state: Outages
    """Whether the engine answered the last call."""
    ping: Callable[[], Awaitable[None]]
    """Returns where the engine takes a write now.

    Raises:
        StoreUnavailableError: it does not.
    """
