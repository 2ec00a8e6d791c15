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
        lateness: Seconds of each beat after it was due; of one that never came, after the end of the measurement.
        within: Beats that stood between two deltas of one burst.
    """

    def __init__(self) -> None:
        super().__init__(stamped=False)
        self.lateness: list[float] = []
        self.within = 0
        self._before = 0.0

    def take(self, data: bytes, now: float) -> None:
        """Take a piece of the body: one chunk or more, of which none is a part of a beat."""
        for number, piece in enumerate(data.split(_BEAT)):
            if number:
                self.lateness.append(now - self._before - HEARTBEAT)
                # The frame of the role counts as a delta, too.
                self.within += (self.deltas - 1) % BLOCK > 0
            super().take(piece, now)
        self._before = now

    def begin_anew(self) -> None:
        """Forget what was watched so far."""
        self.lateness, self.within = [], 0

    def finish(self) -> list[float]:
        """Return how late the beats were, the latest one first."""
        return sorted([*self.lateness, time.monotonic() - self._before - HEARTBEAT], reverse=True)


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
        late = [stream.finish() for stream in streams]
    return {
        "load_worst": max(times[0] for times in late) * 1e3,
        "load_second": max(times[1] for times in late if len(times) > 1) * 1e3,
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
