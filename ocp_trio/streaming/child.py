"""Run a child and stream what it says: child process, lines, stall guard and heartbeat in one."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from math import inf

import trio

from ocp_trio.streaming.groups import unwrap_lone_error
from ocp_trio.streaming.guarded import GuardedChannel, stream_guarded
from ocp_trio.streaming.heartbeat import Rearm, open_rearm, run_heartbeat
from ocp_trio.streaming.lines import MAX_LINE, LineDecoder
from ocp_trio.streaming.process import Child, open_child_process
from ocp_trio.streaming.stall import StallGuard, open_stall_guard
from ocp_trio.streaming.windows import UNLIMITED, Sighting, StallLimits

__all__ = ["stream_child"]

READ_AHEAD = 2**20
"""Bytes of lines, and of what holding them takes, that may wait for the consumer."""
LINE_OVERHEAD = 128
"""Bytes that holding a line takes."""
LEAVE = 1.0
"""Seconds that a child may take to exit by itself once it has come to its end."""


class _Lines(trio.abc.ReceiveChannel[bytes | None]):
    """The consumer's end: lines, and None for a heartbeat."""

    def __init__(self, lines: GuardedChannel[bytes | None], rearm: Rearm) -> None:
        self._lines = lines
        self._rearm = rearm
        self._written = False

    async def receive(self) -> bytes | None:
        # A consumer that comes back for more has written what it had.
        if self._written:
            self._rearm()
        line = await self._lines.receive()
        self._written = line is not None
        return line

    async def aclose(self) -> None:
        await self._lines.aclose()


def _size_of_line(line: bytes | None) -> int:
    return len(line or b"") + LINE_OVERHEAD


async def _feed(child: Child, data: bytes) -> None:
    try:
        await child.stdin.send_all(data)
        await child.stdin.aclose()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        # It reads no more input; what that means is told by what it still says, or by its end.
        return


async def _read(child: Child, guard: StallGuard, max_line: int) -> AsyncGenerator[bytes | None, None]:
    decoder = LineDecoder(max_line)
    while data := await child.receive_some():
        guard.saw_bytes(len(data))
        for line in decoder.feed(data):
            yield line
    if (rest := decoder.flush()) is not None:
        yield rest


async def _leave(child: Child) -> None:
    with trio.move_on_after(LEAVE):
        while await child.receive_some():
            pass
        await child.exited.wait()


@asynccontextmanager
async def _open_lines(
    opened: AbstractAsyncContextManager[Child], stdin: bytes, guard: StallGuard, max_line: int
) -> AsyncIterator[AsyncGenerator[bytes | None, None]]:
    async with opened as child:
        with unwrap_lone_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, child, stdin)
                async with aclosing(_read(child, guard, max_line)) as lines:
                    yield lines
                await _leave(child)
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def stream_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    describe: Callable[[bytes], Sighting | None],
    stdin: bytes = b"",
    cwd: str | None = None,
    limits: StallLimits = UNLIMITED,
    heartbeat_interval: float = inf,
    grace_period: float = 5.0,
    max_line: int = MAX_LINE,
    open_child: Callable[..., AbstractAsyncContextManager[Child]] = open_child_process,
) -> AsyncIterator[trio.abc.ReceiveChannel[bytes | None]]:
    """Run a child; stream its lines, without their line feeds, and None whenever a heartbeat is due.

    The stream ends after the line that ``describe`` calls terminal. It fails with an `UpstreamStalledError`, an
    `UpstreamIncompleteError` where the child ends without such a line, a `LineTooLongError` or a `ChildSpawnError`.

    Args:
        command: Path of the program and its arguments; never a shell string.
        env: The whole environment of the child.
        describe: Says what a line is; None for one that does not prove that the child is at work.
        stdin: All its input.
        cwd: Its working directory; None for the caller's.
        limits: How long it may be silent.
        heartbeat_interval: Seconds without a line, while the consumer waits, before a None; 0 and `math.inf` never.
        grace_period: Seconds between SIGTERM and SIGKILL.
        max_line: Longest line accepted, in bytes.
        open_child: Starts the child; for tests, `ocp_trio.testing.ScriptedProgram.open`.

    Cancellation: leaving the block ends the child and its descendants within ``grace_period + 1`` seconds. After the
    terminal line it has one second to exit by itself first.
    """

    def describe_line(line: bytes | None) -> Sighting | None:
        return None if line is None else describe(line)

    rearm, rearmed = open_rearm()
    async with open_stall_guard(limits) as guard:
        opened = open_child(command, env=env, cwd=cwd, grace_period=grace_period)
        source = _open_lines(opened, stdin, guard, max_line)
        async with stream_guarded(
            source, guard, describe=describe_line, size=_size_of_line, read_ahead=READ_AHEAD
        ) as lines:
            with unwrap_lone_error():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(run_heartbeat, heartbeat_interval, rearmed, lambda: lines.offer(None))
                    yield _Lines(lines, rearm)
                    rearm.close()
