"""The scripted child behaves as a child process does, in virtual time."""

import math
import signal

import pytest
import trio
from shell import read_all
from trio.testing import MockClock

from ocp_trio.errors import ChildSpawnError
from ocp_trio.testing import ScriptedProgram

COMMAND = ["/bin/any", "argument"]


async def test_it_prints_waits_and_exits_as_its_script_says(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([b"a", 2, b"b", 3], returncode=7, stderr=b"a warning")
    seen = []

    async with program.open(COMMAND, env={"A": "b"}) as child:
        while data := await child.receive_some():
            seen.append((trio.current_time(), data))
        assert child.returncode == 7
        assert child.exited.is_set()

    assert seen == [(0, b"a"), (2, b"b")]
    assert trio.current_time() == 5
    assert (child.command, child.env, child.stderr_tail) == (("/bin/any", "argument"), {"A": "b"}, b"a warning")


async def test_it_can_close_its_output_and_stay(autojump_clock: MockClock) -> None:
    async with ScriptedProgram([b"a", None, 5]).open(COMMAND, env={}) as child:
        assert await read_all(child) == b"a"
        assert child.returncode is None
        await child.exited.wait()

    assert trio.current_time() == 5
    assert child.returncode == 0


async def test_its_input_is_recorded(autojump_clock: MockClock) -> None:
    async with ScriptedProgram([5]).open(COMMAND, env={}) as child:
        await child.stdin.send_all(b"one ")
        await child.stdin.send_all(b"")
        await child.stdin.send_all(b"two")
        assert (child.received, child.stdin_closed) == (b"one two", False)
        await child.stdin.aclose()
        assert child.stdin_closed
        with pytest.raises(trio.ClosedResourceError):
            await child.stdin.send_all(b"three")


async def test_one_that_has_exited_takes_no_input(autojump_clock: MockClock) -> None:
    async with ScriptedProgram([]).open(COMMAND, env={}) as child:
        await child.exited.wait()

        with pytest.raises(trio.BrokenResourceError):
            await child.stdin.send_all(b"late")


@pytest.mark.parametrize(
    ("obeys_after", "took", "returncode"),
    [(0, 0, -signal.SIGTERM), (2, 2, -signal.SIGTERM), (math.inf, 5, -signal.SIGKILL)],
)
async def test_leaving_the_block_ends_it_as_a_process_is_ended(
    autojump_clock: MockClock, obeys_after: float, took: float, returncode: int
) -> None:
    program = ScriptedProgram([math.inf], obeys_after=obeys_after)

    with trio.move_on_after(1):
        async with program.open(COMMAND, env={}, grace_period=5) as child:
            await trio.sleep_forever()

    assert trio.current_time() == 1 + took
    assert (child.returncode, child.exited.is_set()) == (returncode, True)


async def test_its_script_goes_on_while_it_is_being_ended(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([3, b"last words", 1], obeys_after=math.inf)

    with trio.move_on_after(1):
        async with program.open(COMMAND, env={}) as child:
            await trio.sleep_forever()

    assert (trio.current_time(), child.returncode) == (4, 0)
    assert await child.receive_some() == b"last words"


async def test_a_program_counts_its_runs(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([math.inf])

    async with program.open(["first"], env={}), program.open(["second"], env={}):
        assert program.running == 2

    assert program.running == 0
    assert [run.command for run in program.runs] == [("first",), ("second",)]


async def test_it_can_refuse_to_run(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([], refuse=ChildSpawnError("it is missing"))

    with pytest.raises(ChildSpawnError, match="it is missing"):
        async with program.open(COMMAND, env={}):
            pass

    assert program.runs == []
