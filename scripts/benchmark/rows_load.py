"""Rows about heartbeats under load: 500 streams on one server, of which half are silent and half say much at once."""

import time
from collections.abc import Mapping

from client import Client, Exchange
from figures import Figure, Group
from pieces import BLOCK
from rows_flow import warm_up
from servers import Settings, Subject

__all__ = ["LOAD"]

STREAMS = 500
HEARTBEAT = 1.0
REST = 4.5
"""Seconds between two bursts of a stream, so that beats are due there too."""
AT_ONCE = 8
"""Requests on their way while all are being started."""
SETTLE = 2.0
"""Seconds after which nothing is being started any more."""
LONGEST = 120.0
"""Seconds for which bursts go on."""
_BEAT = b": keepalive\n"


class _Watched(Exchange):
    """A stream whose beats are watched.

    Attributes:
        lateness: Seconds from each time at which a beat was due to what came in its place.
        within: Beats that stood between two deltas of one burst.
    """

    def __init__(self) -> None:
        super().__init__(stamped=False)
        self.lateness: list[float] = []
        self.within = 0
        self._before = self.sent

    def take(self, data: bytes, now: float) -> None:
        """Take a piece of the body: one chunk or more, of which none is a part of a beat."""
        self._note_lateness(now)
        self._before = now
        for number, piece in enumerate(data.split(_BEAT)):
            # The frame of the role counts as a delta, too.
            self.within += number > 0 and (self.deltas - 1) % BLOCK > 0
            super().take(piece, now)

    def _note_lateness(self, now: float) -> None:
        silence = now - self._before
        # After three silent seconds not one beat is missing, but three.
        self.lateness += [silence - beat * HEARTBEAT for beat in range(1, int(silence / HEARTBEAT) + 1)]

    def begin_anew(self) -> None:
        """Forget what was watched so far."""
        self.lateness, self.within = [], 0

    def latest(self) -> list[float]:
        """Return how late its two latest beats were, those that are overdue now among them."""
        self._note_lateness(time.monotonic())
        return sorted([0.0, 0.0, *self.lateness])[:-3:-1]


def _start(client: Client) -> list[_Watched]:
    bursts = f"send block rest {round(REST * 1000)} " * round(LONGEST / REST)
    streams: list[_Watched] = []
    for number in range(STREAMS):
        script = f"send head {bursts if number % 2 else ''}hold"
        streams.append(client.connect().begin(_Watched(), script, stream=True))
        client.run(lambda: all(stream.headers for stream in streams[:-AT_ONCE]))
    client.run(lambda: all(stream.headers for stream in streams))
    return streams


def _measure_load(subject: Subject, seconds: float) -> Mapping[str, float]:
    with subject.client() as client:
        warm_up(client)
        memory = subject.memory()
        streams = _start(client)
        client.run_for(SETTLE)
        for stream in streams:
            stream.begin_anew()
        cpu = subject.cpu()
        client.run_for(seconds)
        used, grown = subject.cpu() - cpu, subject.memory() - memory
        late = [stream.latest() for stream in streams]
    return {
        "load_worst": max(worst for worst, _ in late) * 1e3,
        "load_second": max(second for _, second in late) * 1e3,
        "load_within": sum(stream.within for stream in streams),
        "load_memory": grown / STREAMS,
        "load_cpu": used / seconds * 100,
    }


LOAD = Group(
    "load",
    (
        Figure("load_worst", "500 streams, half bursting: latest beat is late by", "ms"),
        Figure("load_second", "the same, but for one beat of each stream", "ms", 250),
        Figure("load_within", "the same: within bursts there stand", "beats", 0),
        Figure("load_memory", "the same: each", "KiB", 50),
        Figure("load_cpu", "the same", "% of a core"),
    ),
    _measure_load,
    Settings(heartbeat=HEARTBEAT),
)
