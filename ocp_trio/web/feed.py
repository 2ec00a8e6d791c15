"""``GET /dashboard/events``: what the server does, as an event stream that never ends by itself for whoever watches.

Each second that something has changed in, one event tells all of it: who has just come, or has missed some, knows as
much as all others. Times are seconds since the server's start; ``now`` says which of them it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import trio

from ocp_trio.openai import sse
from ocp_trio.web.callers import Caller
from ocp_trio.web.cancelling import may_see
from ocp_trio.web.connection import Send
from ocp_trio.web.ended import Ended
from ocp_trio.web.running import Running
from ocp_trio.web.site import Site
from ocp_trio.web.status import health
from ocp_trio.web.status_answers import Concurrency, HealthCounters

__all__ = ["Feed", "Watching"]

INTERVAL = 1.0
"""Seconds between two looks."""
QUIET_LOOKS = 10
"""Looks without a change after which the stream says that it is alive."""
LIFE = 600.0
"""Seconds that one stream lasts before its watcher has to ask anew: a key that was revoked shows no more than that."""
NEWEST, NEWEST_FAILED = 10, 20
"""Ended completions that are told, and failed ones."""


class RunningNow(TypedDict):
    """A completion that runs."""

    id: str
    key: str | None
    model: str
    backend: str
    state: str
    arrived: float
    lastLife: float | None
    deltas: int
    chars: int
    heartbeats: int


class EndedLately(TypedDict):
    """A completion that has ended."""

    id: str
    key: str | None
    model: str
    outcome: str
    message: str | None
    at: float
    seconds: float


class Watcher(TypedDict):
    """Whoever watches."""

    name: str | None
    admin: bool


class FeedState(TypedDict):
    """What a watcher may see."""

    status: str
    version: str
    authMode: str
    instanceName: str
    stats: HealthCounters
    concurrency: Concurrency
    you: Watcher
    adminKey: bool
    store: bool
    deltas: int
    running: list[RunningNow]
    ended: list[EndedLately]


class Feed:
    """What there is to see; those who watch in the same second with the same key share one look.

    Args:
        site: What is looked at.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._look = (-1, False)
        self._states: dict[Caller, bytes] = {}

    @property
    def now(self) -> float:
        """Seconds since the server's start."""
        return trio.current_time() - self._site.started

    def state(self, caller: Caller) -> bytes:
        """Return what a caller may see, as JSON."""
        look = (int(self.now / INTERVAL), self._site.lifecycle.draining)
        if look != self._look:
            self._look, self._states = look, {}
        if caller not in self._states:
            self._states[caller] = msgspec.json.encode(self._see(caller))
        return self._states[caller]

    async def wait(self) -> bool:
        """Wait until it is time for the next look, or the server takes no more requests; return whether it does."""
        with trio.move_on_at(self._site.started + (int(self.now / INTERVAL) + 1) * INTERVAL):
            await self._site.lifecycle.drain_began.wait()
        return not self._site.lifecycle.draining

    def _see(self, caller: Caller) -> FeedState:
        site, known = self._site, health(self._site)
        lifecycle = site.lifecycle
        return {
            "status": known["status"],
            "version": known["version"],
            "authMode": known["authMode"],
            "instanceName": known["instanceName"],
            "stats": known["stats"],
            "concurrency": known["concurrency"],
            "you": {"name": caller.name, "admin": caller.is_admin},
            "adminKey": bool(site.settings.admin_key),
            "store": site.store is not None,
            "deltas": lifecycle.deltas + sum(each.ledger.deltas for each in lifecycle.running.values()),
            "running": [
                self._running(each) for each in lifecycle.running.values() if may_see(site, caller, each.ledger.caller)
            ],
            "ended": [
                self._ended(each)
                for each in _newest(each for each in lifecycle.ended if may_see(site, caller, each.owner))
            ],
        }

    def _running(self, running: Running) -> RunningNow:
        ledger, life = running.ledger, running.ledger.last_life
        return {
            "id": ledger.request_id,
            "key": ledger.caller.name,
            "model": ledger.request.model,
            "backend": ledger.backend,
            "state": "queued" if life is None else "running",
            "arrived": self._time(ledger.arrived),
            "lastLife": None if life is None else self._time(life),
            "deltas": ledger.deltas,
            "chars": ledger.response_chars,
            "heartbeats": running.sink.beats,
        }

    def _ended(self, ended: Ended) -> EndedLately:
        return {
            "id": ended.request_id,
            "key": ended.owner.name,
            "model": ended.model,
            "outcome": ended.outcome,
            "message": ended.message,
            "at": self._time(ended.at),
            "seconds": round(ended.seconds, 3),
        }

    def _time(self, when: float) -> float:
        return round(when - self._site.started, 3)


def _newest(ended: Iterable[Ended]) -> list[Ended]:
    """Choose the newest of all and of those that have failed, the newest last."""
    seen = list(ended)
    failed = [each for each in seen if each.message is not None][-NEWEST_FAILED:]
    first = len(seen) - NEWEST
    return [each for number, each in enumerate(seen) if number >= first or each in failed]


@dataclass(frozen=True)
class Watching:
    """One watcher's response; it takes no slot and is no completion, and ends when the server begins to stop."""

    feed: Feed
    caller: Caller

    async def respond(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        """Send events until the server stops, or the stream has lasted for `LIFE`.

        Cancellation: at once; the watcher has left.
        """
        own = [(name.encode(), value.encode()) for name, value in sse.STREAM_HEADERS]
        await send({"type": "http.response.start", "status": 200, "headers": [*headers, *own]})
        told, quiet, end = b"", 0, self.feed.now + LIFE
        goes_on = True
        while goes_on:
            # The last look tells that the server stops.
            goes_on = not told or (await self.feed.wait() and self.feed.now < end)
            state = self.feed.state(self.caller)
            quiet = 0 if state != told else (quiet + 1) % QUIET_LOOKS
            if state != told:
                frame = sse.data(b'{"now":%.3f,"state":%b}' % (self.feed.now, state))
                await send({"type": "http.response.body", "body": frame, "more_body": True})
            elif quiet == 0:
                await send({"type": "http.response.body", "body": sse.COMMENT, "more_body": True})
            told = state
        await send({"type": "http.response.body", "body": b"", "more_body": False})
