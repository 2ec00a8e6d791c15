"""Know which completions run and which have ended last, and bring them to an end when the server stops."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from trio_util import AsyncValue  # type: ignore[import-untyped]  # the package ships no py.typed

from ocp_trio.errors import ShuttingDownError
from ocp_trio.web.ended import Ended
from ocp_trio.web.running import Running

__all__ = ["Lifecycle"]

REMEMBERED = 200
"""Completions that are remembered after their end."""


class Lifecycle:
    """What the server and its requests tell each other.

    Attributes:
        drain_began: Set when the server takes no new requests any more.
        running: The completions that run, by request id, in order of arrival.
        active: How many those are.
        flights: How many answers are being made that several completions, of other instances too, may share.
        ended: Those that have ended last, the newest last.
        deltas: Pieces that all that have ended have produced.
    """

    def __init__(self) -> None:
        self.drain_began = trio.Event()
        self.running: dict[str, Running] = {}
        self.active = AsyncValue(0)
        self.flights = AsyncValue(0)
        self.ended = deque[Ended](maxlen=REMEMBERED)
        self.deltas = 0
        self._stopped = False

    @property
    def draining(self) -> bool:
        """Whether the server takes no new requests any more."""
        return self.drain_began.is_set()

    @contextmanager
    def completion(self, running: Running) -> Iterator[None]:
        """List a completion as running for the length of a block."""
        request_id = running.ledger.request_id
        self.running[request_id] = running
        self.active.value = len(self.running)
        if self._stopped:
            running.end(_stopping())
        try:
            yield
        finally:
            del self.running[request_id]
            self.active.value = len(self.running)

    def remember(self, ended: Ended) -> None:
        """Keep what has become of a completion."""
        self.ended.append(ended)
        self.deltas += ended.deltas

    @contextmanager
    def flight(self) -> Iterator[None]:
        """Count an answer that may be shared for the length of a block."""
        self.flights.value += 1
        try:
            yield
        finally:
            self.flights.value -= 1

    def stop(self) -> None:
        """End all completions, and whichever begins from now on, with an error that says so."""
        self._stopped = True
        for running in self.running.values():
            running.end(_stopping())

    async def drain(self, grace: float, end_within: float) -> None:
        """Refuse new requests, give running ones ``grace`` seconds, then end them.

        Shared answers that other instances follow have as long; the end of the store ends what is left of them.

        Cancellation: at once; requests are then ended by whoever cancels them.

        Args:
            grace: Seconds that running requests have to finish by themselves.
            end_within: Seconds that their ends may take after that.
        """
        self.drain_began.set()
        with trio.move_on_after(grace):
            await self.active.wait_value(0)
            await self.flights.wait_value(0)
        self.stop()
        with trio.move_on_after(end_within):
            await self.active.wait_value(0)


def _stopping() -> ShuttingDownError:
    return ShuttingDownError("the server is shutting down")
