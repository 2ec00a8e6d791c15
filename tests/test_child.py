"""A child's lines are streamed, with heartbeats, and the child ends with the stream."""

import math
import signal
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import trio
from shell import ENV, LIMIT, STUBBORN, alive, shell
from trio.testing import MockClock
from upstream import Timeline
from watching import wait_gone

from ocp_trio.errors import ChildSpawnError, LineTooLongError, UpstreamIncompleteError, UpstreamStalledError
from ocp_trio.streaming import Sighting, StallLimits, stream_child
from ocp_trio.testing import ScriptedChild, ScriptedProgram

Lines = AbstractAsyncContextManager[trio.abc.ReceiveChannel[bytes | None]]


def describe(line: bytes) -> Sighting | None:
    """``result`` is the last line; a line that begins with ``#`` proves nothing."""
    if line.startswith(b"#"):
        return None
    return Sighting(line.decode(errors="replace")[:10], content=True, terminal=line == b"result")


def scripted(program: ScriptedProgram, **options: Any) -> Lines:
    return stream_child(["/bin/any"], env={}, describe=describe, open_child=program.open, **options)


def real(script: str, **options: Any) -> Lines:
    return stream_child(shell(script), **{"env": ENV, "describe": describe, "grace_period": 0.2, **options})


async def collect(stream: Lines) -> Timeline:
    """Return when each line arrived, and at last how the stream ended; None is a beat."""
    seen: Timeline = []
    async with stream as lines:
        try:
            async for line in lines:
                seen.append((trio.current_time(), "beat" if line is None else line.decode()))
            seen.append((trio.current_time(), "end"))
        except (UpstreamStalledError, UpstreamIncompleteError, LineTooLongError, ChildSpawnError) as error:
            seen.append((trio.current_time(), type(error).__name__))
    return seen


def words(seen: Timeline) -> list[str]:
    return [word for _, word in seen]


# In virtual time


async def test_lines_come_as_the_child_prints_them(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"on", 1, b"e\ntwo\n", 2, b"result\n"])

    assert await collect(scripted(program)) == [(1, "one"), (1, "two"), (3, "result"), (3, "end")]


async def test_its_input_is_written_whole_and_closed(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([1, b"result\n"])

    await collect(scripted(program, stdin=b"question"))

    [run] = program.runs
    assert (run.received, run.stdin_closed) == (b"question", True)


async def test_one_that_reads_no_input_can_answer_all_the_same(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"result\n"])

    assert await collect(scripted(program, stdin=b"question")) == [(0, "result"), (0, "end")]


async def test_it_beats_in_each_silence_but_not_in_a_burst(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([25, b"one\n", 4, b"two\n" * 1000, 15, b"result\n"])

    seen = await collect(scripted(program, heartbeat_interval=10))

    assert seen[:3] == [(10, "beat"), (20, "beat"), (25, "one")]
    assert seen[3:1003] == [(29, "two")] * 1000
    assert seen[1003:] == [(39, "beat"), (44, "result"), (44, "end")]


async def test_there_is_no_beat_while_the_consumer_is_busy(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([1, b"one\n", 200, b"result\n"])
    seen: Timeline = []

    async with scripted(program, heartbeat_interval=10) as lines:
        async for line in lines:
            seen.append((trio.current_time(), "beat" if line is None else line.decode()))
            await trio.sleep(100)

    assert seen == [(1, "one"), (111, "beat"), (211, "result")]


async def test_a_silent_child_stalls_whatever_beats_there_are(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"one\n", math.inf])

    seen = await collect(scripted(program, heartbeat_interval=4, limits=StallLimits(idle=10)))

    assert seen == [(0, "one"), (4, "beat"), (8, "beat"), (10, "UpstreamStalledError")]
    assert [run.returncode for run in program.runs] == [-signal.SIGTERM]


async def test_a_stall_is_told_when_the_child_has_ended(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"one\n", math.inf], obeys_after=math.inf)

    seen = await collect(scripted(program, grace_period=5, limits=StallLimits(idle=10)))

    assert seen == [(0, "one"), (15, "UpstreamStalledError")]
    assert [run.returncode for run in program.runs] == [-signal.SIGKILL]


async def test_a_line_that_proves_nothing_is_passed_on_and_saves_nobody(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"# started\n", math.inf])

    seen = await collect(scripted(program, limits=StallLimits(first_event=10, idle=3, keepalive_cap=7)))

    assert seen == [(0, "# started"), (10, "UpstreamStalledError")]


async def test_pieces_of_a_line_are_life_up_to_the_cap(autojump_clock: MockClock) -> None:
    dots: list[bytes | float | None] = [2, b"."]
    program = ScriptedProgram([b"one\n", *dots * 100])

    seen = await collect(scripted(program, limits=StallLimits(idle=3, keepalive_cap=7)))

    assert seen == [(0, "one"), (7, "UpstreamStalledError")]


async def test_a_consumer_that_leaves_ends_the_child(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"one\n", math.inf], obeys_after=2)

    with trio.move_on_after(3) as caller:
        await collect(scripted(program, heartbeat_interval=1, limits=StallLimits(idle=10)))

    assert caller.cancelled_caught
    assert trio.current_time() == 5
    assert ([run.returncode for run in program.runs], program.running) == ([-signal.SIGTERM], 0)


async def test_so_does_one_that_closes_its_end(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"one\n", math.inf])

    async with scripted(program) as lines:
        await lines.receive()
        await lines.aclose()
        await trio.sleep(1)

        assert program.running == 0


async def test_after_its_last_line_a_child_has_a_second_to_exit_by_itself(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"result\n", 0.9])

    assert await collect(scripted(program)) == [(0, "result"), (0, "end")]
    assert trio.current_time() == 0.9
    assert [run.returncode for run in program.runs] == [0]


class Endless(ScriptedChild):
    """Prints lines of 64 KiB as fast as they are read."""

    def __init__(self) -> None:
        super().__init__([], {})
        self.read = 0

    async def receive_some(self) -> bytes:
        await trio.lowlevel.checkpoint()
        self.read += 2**16
        return b"x" * (2**16 - 1) + b"\n"


async def test_not_more_than_a_mebibyte_is_read_ahead_of_the_consumer(autojump_clock: MockClock) -> None:
    child = Endless()

    def open_child(*_: Any, **__: Any) -> nullcontext[Endless]:
        return nullcontext(child)

    lines = stream_child(
        ["/bin/any"], env={}, describe=describe, open_child=open_child, limits=StallLimits(first_event=5, idle=5)
    )
    async with lines:
        await trio.sleep(1000)

    assert child.read == 2**20


async def test_a_child_that_cannot_be_started_is_told(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([], refuse=ChildSpawnError("it is missing"))

    assert await collect(scripted(program)) == [(0, "ChildSpawnError")]


async def test_a_line_beyond_the_bound_is_told(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"one\n" + b"x" * 11, math.inf])

    assert words(await collect(scripted(program, max_line=10))) == ["LineTooLongError"]


# With real children


async def test_a_child_that_stays_after_its_last_line_is_ended() -> None:
    script = f"echo $$; echo result; {STUBBORN}"

    with trio.fail_after(LIMIT):
        seen = words(await collect(real(script)))  # row 20

        assert seen[1:] == ["result", "end"]
        await wait_gone(int(seen[0]))


async def test_a_child_that_exits_with_half_a_line_is_incomplete() -> None:
    with trio.fail_after(LIMIT):
        seen = words(await collect(real("echo one; printf resul")))  # row 21

    assert seen == ["one", "resul", "UpstreamIncompleteError"]


async def test_so_is_one_that_closes_its_output_and_stays() -> None:
    script = "echo $$; exec >&- 2>&-; sleep 1000"

    with trio.fail_after(LIMIT):
        seen = words(await collect(real(script)))  # row 22

    assert seen[1:] == ["UpstreamIncompleteError"]
    assert not alive(int(seen[0]))


async def test_so_is_one_whose_grandchild_holds_its_output_open() -> None:
    with trio.fail_after(LIMIT):
        seen = words(await collect(real("sleep 1000 & echo $!")))  # row 23

        assert seen[1:] == ["UpstreamIncompleteError"]
        await wait_gone(int(seen[0]))


async def test_its_last_line_is_enough_whatever_a_grandchild_holds_open() -> None:
    with trio.fail_after(LIMIT):
        seen = words(await collect(real("sleep 1000 & echo $!; echo result")))

        assert seen[1:] == ["result", "end"]
        await wait_gone(int(seen[0]))
