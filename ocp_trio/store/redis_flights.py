"""Let one instance lead a flight, and the others follow it through a Redis stream.

Whoever leads holds a lease, which it renews for as long as it lives, and copies what it publishes into a stream; an
instance with followers registers itself with the lease. Both end by themselves when their instance dies.
"""

import logging
import secrets
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from hashlib import sha256
from math import ceil
from typing import Final, NamedTuple, Protocol

import msgspec
import trio
from coredis.response.types import StreamEntry

from ocp_trio.errors import StoreUnavailableError
from ocp_trio.store.flight import Cursor, Flight, FlightLostError
from ocp_trio.store.flights import cancel_when_deserted, fly_alone
from ocp_trio.store.interface import Producer
from ocp_trio.store.redis_flight_scripts import CLOSE, FOLLOW, JOIN, LEAD
from ocp_trio.store.redis_link import RedisLink

__all__ = ["LEASE", "RENEWAL", "RedisFlights"]

logger = logging.getLogger(__name__)

LEASE: Final = 2.4
"""Seconds after which an instance that does not renew its lease counts as dead."""
RENEWAL: Final = LEASE / 3
"""Seconds between two renewals; also the time after which a leader knows that other instances follow no more."""
GATHERING: Final = 0.1
"""Seconds of batches that are copied at once while no other instance follows: what the first of them waits for."""
KEPT: Final = 60
"""Seconds that a stream outlives its leader's last sign of life, for instances that read it still."""
MAX_STREAM: Final = 32 * 2**20
"""Bytes of a flight that are copied into Redis; beyond it, other instances lose it."""
PAGE: Final = 100
"""Entries that are read at once."""

BATCH, END = b"b", b"e"
FINISHED, LOST = b"finished", b"lost"


class _Place(NamedTuple):
    """Where the instances meet for one key."""

    lease: str
    """Holds the leader's token."""
    followers: str
    """A sorted set: the tokens of other instances with followers, by the time at which they count as dead."""

    def stream(self, leader: str) -> str:
        """Return where a leader's batches go."""
        return f"{self.lease}:{leader}"


class OpenReader(Protocol):
    """Opens a connection on which reads may wait, for the length of a block."""

    def __call__(self) -> AbstractAsyncContextManager[RedisLink]: ...


class RedisFlights:
    """Fills flights, as the function `fly_alone` does for one instance.

    Args:
        link: The Redis.
        open_reader: Opens a connection to it for reads that wait for `RENEWAL` seconds.
    """

    def __init__(self, link: RedisLink, open_reader: OpenReader) -> None:
        self._link = link
        self._open_reader = open_reader
        # Finished flights whose end has not reached Redis yet: token by lease.
        self._finished: dict[str, str] = {}

    async def fly(self, key: bytes, flight: Flight, produce: Producer) -> None:
        """Fill a flight from its producer, or from the instance that leads."""
        name = f"ocp:flight:{sha256(key).hexdigest()}"
        place = _Place(name, f"{name}:followers")
        me = secrets.token_hex(8)
        while True:
            try:
                finished = self._finished.get(place.lease, "")
                leader = (await self._link.run(JOIN, place, me, _ms(LEASE), finished)).decode()
            except StoreUnavailableError:
                _say_unshared()
                return await fly_alone(key, flight, produce)
            if leader == me:
                return await self._lead(place, me, flight, produce)
            if await self._follow(place, leader, me, flight):
                return None

    async def _lead(self, place: _Place, me: str, flight: Flight, produce: Producer) -> None:
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._share, place, me, flight, nursery.cancel_scope)
                await produce(flight.publish)
                flight.finish()
                self._finished[place.lease] = me
        finally:
            if self._finished.get(place.lease) == me:
                del self._finished[place.lease]

    async def _share(
        self,
        place: _Place,
        me: str,
        flight: Flight,
        scope: trio.CancelScope,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Copy a flight for other instances until it ends; cancel it when nobody follows, here or there."""
        with flight.joined(counts=False) as cursor:
            task_status.started()
            complete = False
            try:
                complete = await self._copy(place, me, flight, cursor)
            except StoreUnavailableError:
                _say_unshared()
            finally:
                with suppress(StoreUnavailableError):
                    rest = msgspec.msgpack.encode(flight.read_all(cursor))
                    end = FINISHED if complete and flight.finished else LOST
                    await self._link.run(CLOSE, [*place, place.stream(me)], me, KEPT, rest, end)
        if not flight.ended:
            await cancel_when_deserted(flight, scope)

    async def _copy(self, place: _Place, me: str, flight: Flight, cursor: Cursor) -> bool:
        """Copy batches and renew the lease until the flight ends, nobody follows, or it cannot be shared any more.

        Returns:
            Whether all that was read has been copied, and the flight has ended.
        """
        copied = others = 0
        alone = False
        while copied < MAX_STREAM:
            with trio.move_on_after(RENEWAL):
                await flight.wait_until(partial(_has_news, flight, cursor, alone))
            if not others:
                with trio.move_on_after(GATHERING):
                    await flight.wait_until(partial(_has_turned, flight, alone))
            if flight.ended:
                return True
            batches = flight.read_all(cursor)
            copied += sum(map(len, batches))
            payload = msgspec.msgpack.encode(batches) if batches else b""
            keys = [*place, place.stream(me)]
            others = await self._link.run(LEAD, keys, me, _ms(LEASE), KEPT, payload)
            alone = not flight.followers
            if others < 0 or (alone and not others):
                break
            flight.adopt(adopted=alone)
        return False

    async def _follow(self, place: _Place, leader: str, me: str, flight: Flight) -> bool:
        """Fill a flight from its leader; return False if that one died before anything came."""
        ended = True
        gone = trio.Event()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel_when_deserted, flight, nursery.cancel_scope)
                nursery.start_soon(self._attend, place, leader, me, gone)
                ended = await self._read(place.stream(leader), flight, gone)
                nursery.cancel_scope.cancel()
        finally:
            with suppress(StoreUnavailableError):
                await self._link.call(lambda client: client.zrem(place.followers, [me]))
        return ended

    async def _attend(self, place: _Place, leader: str, me: str, gone: trio.Event) -> None:
        """Tell the leader that somebody follows, until it is gone."""
        with suppress(StoreUnavailableError):
            while await self._link.run(FOLLOW, place, leader, me, _ms(LEASE)):  # noqa: ASYNC110 (renews a lease)
                await trio.sleep(RENEWAL)
        gone.set()

    async def _read(self, stream: str, flight: Flight, gone: trio.Event) -> bool:
        """Publish what comes through a stream; return False if it ended before anything came.

        Raises:
            FlightLostError: it ended later, but before the leader had finished.
        """
        position: str | bytes = b"0"
        with suppress(StoreUnavailableError):
            async with self._open_reader() as reader:
                end = b""
                while not end:
                    last_look = gone.is_set()
                    entries = await _read_stream(reader, stream, position, wait=not last_look)
                    if last_look and not entries:
                        break
                    for entry in entries:
                        position, end = entry.identifier, _field(entry, END)
                        for batch in msgspec.msgpack.decode(_field(entry, BATCH), type=list[bytes]):
                            await flight.publish(batch)
                if end == FINISHED:
                    flight.finish()
                    return True
        if flight.published:
            raise FlightLostError("the instance that produced the shared answer is gone")
        return False


async def _read_stream(reader: RedisLink, stream: str, position: str | bytes, *, wait: bool) -> tuple[StreamEntry, ...]:
    block = _ms(RENEWAL) if wait else None
    found = await reader.call(lambda client: client.xread({stream: position}, count=PAGE, block=block))
    return next(iter(found.values())) if found else ()


def _field(entry: StreamEntry, name: bytes) -> bytes:
    value = entry.field_values.get(name, b"")
    # The client has been told to leave bytes as they are.
    assert isinstance(value, bytes)
    return value


def _has_news(flight: Flight, cursor: Cursor, alone: bool) -> bool:  # noqa: FBT001 (a condition's own state)
    return cursor.position < flight.published or _has_turned(flight, alone)


def _has_turned(flight: Flight, alone: bool) -> bool:  # noqa: FBT001 (a condition's own state)
    """Whether a flight has ended, or has lost its last follower of this instance, or gained its first."""
    return flight.ended or alone is bool(flight.followers)


def _say_unshared() -> None:
    """Log that other instances do not take part: a flight is worth more than its being shared."""
    logger.warning("flight_unshared")


def _ms(seconds: float) -> int:
    return ceil(seconds * 1000)
