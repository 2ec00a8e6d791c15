"""Where a stall timeout is set, a silent child is given up; one that is silent by nature is not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest
import trio
from claude_lines import Json, assistant, block, delta, encoded, message_start, result, tool_result, tool_use, user
from fake_backend import request
from trio.testing import MockClock

from ocp_trio.claude import ClaudeBackend, open_claude
from ocp_trio.completion import Activity, Completed, Event, Failed, TextDelta
from ocp_trio.errors import UpstreamStalledError
from ocp_trio.testing import ScriptedProgram

DAY = 86_400.0
TEXT = encoded(message_start(), block(), delta("a"))
DONE = encoded(result("a"))


def line(subtype: str, **fields: object) -> Json:
    return {"type": "system", "subtype": subtype, **fields}


@asynccontextmanager
async def open_scripted(program: ScriptedProgram, **options: Any) -> AsyncIterator[ClaudeBackend]:
    async with open_claude("/any", environment={"HOME": "/any"}, open_child=program.open, **options) as backend:
        yield backend


async def ask(*script: bytes | float, **options: Any) -> tuple[float, Event, ScriptedProgram]:
    """Return after how many seconds and how the answer of a child ends."""
    program = ScriptedProgram([*script, inf])
    async with open_scripted(program, **options) as backend, backend.stream(request()) as batches:
        began = trio.current_time()
        events = [event async for batch in batches for event in batch]
        return trio.current_time() - began, events[-1], program


def facts(event: Event) -> tuple[str, float, str | None, bool, str]:
    """Return what a stall says."""
    assert isinstance(event, Failed)
    assert isinstance(event.error, UpstreamStalledError)
    found = event.error.facts
    return found.phase, found.limit, found.last_event, found.visible_output, found.setting


async def test_without_a_stall_timeout_silence_ends_nothing(autojump_clock: MockClock) -> None:
    seconds, last, _ = await ask(DAY, TEXT, DAY, DONE)

    assert seconds == 2 * DAY
    assert isinstance(last, Completed)


async def test_a_child_that_never_says_anything_is_given_up(autojump_clock: MockClock) -> None:
    seconds, last, program = await ask(stall_timeout=60.0)

    assert seconds == 60
    assert facts(last) == ("first_event", 60, None, False, "CLAUDE_STALL_TIMEOUT")
    assert program.running == 0


async def test_a_child_that_falls_silent_is_given_up(autojump_clock: MockClock) -> None:
    seconds, last, program = await ask(7, TEXT, stall_timeout=60.0)

    assert seconds == 67
    assert facts(last) == ("idle", 60, "content_block_delta", True, "CLAUDE_STALL_TIMEOUT")
    assert program.running == 0


@pytest.mark.parametrize(
    "sign",
    [
        encoded(line("api_retry")),
        encoded(line("of the future")),
        encoded({"type": "of the future"}),
        encoded(assistant(tool_use(), parent_tool_use_id="t")),
        b"npm WARN x\n",
        b"half a line",
    ],
)
async def test_anything_that_a_child_says_is_life(autojump_clock: MockClock, sign: bytes) -> None:
    seconds, last, _ = await ask(TEXT, *(50, sign) * 10, 50, b"\n" + DONE, stall_timeout=60.0)

    assert seconds == 550
    assert isinstance(last, Completed)


async def test_a_running_tool_may_be_silent(autojump_clock: MockClock) -> None:
    call, end = encoded(assistant(tool_use())), encoded(user(tool_result()))

    seconds, last, _ = await ask(call, DAY, end, 59, TEXT, DONE, stall_timeout=60.0)

    assert seconds == DAY + 59
    assert isinstance(last, Completed)


async def test_the_clock_goes_on_when_a_tool_has_ended(autojump_clock: MockClock) -> None:
    call, end = encoded(assistant(tool_use())), encoded(user(tool_result()))

    seconds, last, _ = await ask(call, DAY, end, DAY, stall_timeout=60.0)

    assert seconds == DAY + 60
    assert facts(last)[2] == "user"


async def test_a_compaction_may_be_silent(autojump_clock: MockClock) -> None:
    compacting, over = encoded(line("status", status="compacting")), encoded(line("status", status=None))

    seconds, last, _ = await ask(compacting, DAY, over, DAY, stall_timeout=60.0)

    assert seconds == DAY + 60
    assert facts(last)[2] == "status"


async def test_a_consumer_that_reads_slowly_makes_no_child_stall(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([TEXT, 30, DONE, inf])

    async with open_scripted(program, stall_timeout=60.0) as backend, backend.stream(request()) as batches:
        events: list[Event] = []
        async for batch in batches:
            events += batch
            await trio.sleep(DAY)

    assert [event for event in events if not isinstance(event, Activity)][1:3] == [TextDelta("a"), events[-1]]
    assert isinstance(events[-1], Completed)


async def test_an_end_that_can_be_read_at_the_deadline_wins(autojump_clock: MockClock) -> None:
    seconds, last, _ = await ask(TEXT, 60, DONE, stall_timeout=60.0)

    assert seconds == 60
    assert isinstance(last, Completed)


async def test_the_callers_own_timeout_is_no_stall(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([TEXT, inf])
    events: list[Event] = []

    with trio.move_on_after(60) as scope:
        async with open_scripted(program, stall_timeout=60.5) as backend, backend.stream(request()) as batches:
            async for batch in batches:
                events += batch

    assert scope.cancelled_caught
    assert not any(isinstance(event, Failed) for event in events)
    assert program.running == 0


async def test_a_child_has_one_second_to_exit_once_its_answer_is_complete(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([TEXT, DONE, inf])

    async with open_scripted(program) as backend:
        began = trio.current_time()
        async with backend.stream(request()) as batches:
            async for _ in batches:
                pass
            answered = trio.current_time() - began
        left = trio.current_time() - began

    assert (answered, left) == (0, 1)
    assert program.runs[0].stdin_closed


async def test_a_child_that_is_cut_off_has_none(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([TEXT, b"x" * 200, inf])

    async with open_scripted(program, max_line=100) as backend:
        began = trio.current_time()
        async with backend.stream(request()) as batches:
            async for _ in batches:
                pass

        assert trio.current_time() == began


async def test_a_stall_timeout_that_is_changed_holds_for_the_next_answer(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([TEXT, 100.0, DONE, inf])
    last = []
    async with open_scripted(program) as backend:
        for stall_timeout in (60.0, inf):
            backend.tune(
                max_concurrent=1, max_queue=1, retry_after=1, stall_timeout=stall_timeout, warm_conversations=0
            )
            async with backend.stream(request()) as batches:
                last += [[event async for batch in batches for event in batch][-1]]

    assert facts(last[0])[:2] == ("idle", 60.0)
    assert isinstance(last[1], Completed)
