"""Run flights in tasks of the store's own block, so that no client owns what others follow."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import trio

from ocp_trio.errors import OcpError
from ocp_trio.store.flight import MAX_BYTES, Cursor, Flight, FlightLostError
from ocp_trio.store.interface import Producer
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["Fly", "OwnedFlights", "cancel_when_deserted", "fly_alone", "open_flights"]

logger = logging.getLogger(__name__)

Fly: TypeAlias = Callable[[bytes, Flight, Producer], Awaitable[None]]
"""Fills one flight: from its producer, or from another instance that leads."""


class OwnedFlights:
    """All flights of an instance; made by `open_flights`, and described by the protocol `Flights`."""

    def __init__(self, nursery: trio.Nursery, fly: Fly, max_bytes: int) -> None:
        self._nursery = nursery
        self._fly = fly
        self._max_bytes = max_bytes
        self._flights: dict[bytes, Flight] = {}

    @property
    def in_flight(self) -> int:
        """Flights that this instance runs or follows."""
        return len(self._flights)

    @asynccontextmanager
    async def follow(self, key: bytes, produce: Producer) -> AsyncIterator[Cursor]:
        """Follow the flight of ``key`` from its first batch on; start it where there is none."""
        found = self._flights.get(key)
        flight = found if found is not None and found.joinable else Flight(self._max_bytes)
        try:
            with flight.joined() as cursor:
                if flight is not found:
                    self._flights[key] = flight
                    self._nursery.start_soon(self._own, key, flight, produce)
                yield cursor
        finally:
            # Whoever leaves last turns off the light: no child outlives the requests that it runs for. That takes as
            # long as the producer's end, which has the bound of its backend's block.
            with trio.CancelScope(shield=True):
                await flight.wait_left()

    async def _own(self, key: bytes, flight: Flight, produce: Producer) -> None:
        try:
            with unwrap_lone_error():
                await self._fly(key, flight, produce)
        except OcpError as error:
            logger.warning("flight_lost", extra={"cause": type(error).__name__})
        finally:
            flight.land(FlightLostError("the shared answer ended before it was complete"))
            if self._flights.get(key) is flight:
                del self._flights[key]


@asynccontextmanager
async def open_flights(fly: Fly, *, max_bytes: int = MAX_BYTES) -> AsyncIterator[OwnedFlights]:
    """Run flights for the length of a block; those still in the air at its end are cancelled.

    Args:
        fly: Fills a flight.
        max_bytes: Bytes of each that are kept for those who join later.
    """
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            yield OwnedFlights(nursery, fly, max_bytes)
            nursery.cancel_scope.cancel()


async def fly_alone(_key: bytes, flight: Flight, produce: Producer) -> None:
    """Fill a flight from its producer, for the followers of this instance."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_when_deserted, flight, nursery.cancel_scope)
        await produce(flight.publish)
        flight.finish()
        nursery.cancel_scope.cancel()


async def cancel_when_deserted(flight: Flight, scope: trio.CancelScope) -> None:
    """Cancel a scope, and let nobody join any more, as soon as nobody follows."""
    await flight.wait_until(lambda: not flight.followers)
    flight.close()
    scope.cancel()
