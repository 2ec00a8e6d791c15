"""Stream from an upstream that may be silent for minutes, and always know whether it is alive.

A library of its own for Trio programs: it imports Trio and nothing else. Each part is of use without the others:

- `stream_child` runs a child and streams its lines, with guard and heartbeat;
- `open_stall_guard` bounds an upstream's silence: one wait (`StallGuard.read`), a receive stream (`GuardedStream`), or
  events of any kind (`stream_guarded`), described to it by a `Sighting` each;
- `run_heartbeat` tells when a heartbeat is due, and `open_rearm` tells it that something was written;
- `run_exchange` joins an upstream, a heartbeat and a writer;
- `open_child_process` runs a child that leaves nothing behind, and `LineDecoder` cuts its output into lines.

Which silence is measured, where, and what follows:

===================== ============================ ============================ ===========================
silence               where it is measured         what ends                    what is said
===================== ============================ ============================ ===========================
ours, towards the     `run_heartbeat`, beside the  nothing                      a heartbeat, again after
client                writer; each real write                                   each ``heartbeat_interval``
                      starts it anew
upstream's, before    `StallGuard`, round every    the upstream: cancelled and  `UpstreamStalledError`,
its first content     wait for it                  cleaned up                   phase ``creation`` or
                                                                                ``first_event``
upstream's, between   the same                     the same                     phase ``idle``
two signs of life
upstream's, but for   the same, where bytes are    the same                     phase ``keepalive_only``
bytes without events  reported
upstream's, after     the same: `FINISH_GRACE`     the upstream                 the stream ends well
its answer's finish
a child's, that has   `ChildProcess`, while its    the child's output           what its end means to the
exited, in a pipe     output is waited for: 0.1 s                               caller
that others hold
a child's, asked to   `open_child_process`, at the the child and all its        nothing
end                   end of its block:            descendants: killed
                      ``grace_period``
a client's, that      nowhere here: it stops the   nothing                      nothing
does not read         clocks, then the upstream
===================== ============================ ============================ ===========================

A limit on the whole is the caller's own cancel scope, or ``cut`` of `run_exchange`.
"""

from ocp_trio.streaming.child import stream_child
from ocp_trio.streaming.exchange import run_exchange
from ocp_trio.streaming.guarded import GuardedChannel, stream_guarded
from ocp_trio.streaming.heartbeat import Rearm, open_rearm, run_heartbeat
from ocp_trio.streaming.lines import MAX_LINE, LineDecoder
from ocp_trio.streaming.process import Child, ChildProcess, open_child_process
from ocp_trio.streaming.stall import GuardedStream, StallGuard, open_stall_guard
from ocp_trio.streaming.tally import ProcessTally
from ocp_trio.streaming.windows import FINISH_GRACE, Sighting, StallLimits

__all__ = [
    "FINISH_GRACE",
    "MAX_LINE",
    "Child",
    "ChildProcess",
    "GuardedChannel",
    "GuardedStream",
    "LineDecoder",
    "ProcessTally",
    "Rearm",
    "Sighting",
    "StallGuard",
    "StallLimits",
    "open_child_process",
    "open_rearm",
    "open_stall_guard",
    "run_exchange",
    "run_heartbeat",
    "stream_child",
    "stream_guarded",
]
