"""A child that has called the caller's tools waits for their results, and for nothing else."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_backend import FakeBackend, collect, open_fake, seen, words
from fake_script import Step, client_call, client_results, hang, line, message_end, prompt, success, text, tool_progress
from watching import until, wait_gone

from ocp_trio.completion import (
    Completed,
    CompletionRequest,
    Event,
    Message,
    Text,
    TextDelta,
    Tool,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResult,
    ToolUse,
    Usage,
)

LOOK = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
HERE = {"at": "here"}
DONE = [text("Seen."), success()]
ONCE = [text("Let me look."), client_call("look", **HERE), client_results(), *DONE]
TWICE = [client_call("look", **HERE), client_call("look", **HERE), client_results(), *DONE]
ROUND = Usage(input=101, output=55, cache_read=303, cache_write=202)
FIRST_ID, SECOND_ID = "toolu_fake_0001_1", "toolu_fake_0001_0"
CALLED = Message("assistant", (Text("Let me look."), ToolUse(FIRST_ID, "look", HERE)))
RESULT = Message("user", (ToolResult(FIRST_ID, (Text("a cat"),)),))


def user(*steps: Step) -> Message:
    return Message("user", (Text(prompt(*steps)),))


def asked(*messages: Message, **fields: Any) -> CompletionRequest:
    return CompletionRequest(**{"model": "claude-sonnet-4-6", "messages": messages, "tools": (LOOK,), **fields})


async def answer(fake: FakeBackend, request: CompletionRequest) -> list[Event]:
    async with fake.backend.stream(request) as batches:
        return await collect(batches)


def told(fake: FakeBackend, index: int = 0) -> list[Any]:
    """Return the results that a child was given for its calls."""
    replies = [json.loads(text) for text in fake.records()[index].stdin if '"control_response"' in text]
    results = [reply["response"]["response"]["mcp_response"]["result"] for reply in replies]
    return [result["content"] for result in results if "content" in result]


async def test_an_answer_ends_with_its_calls_and_the_next_one_goes_on_in_the_child(tmp_path: Path) -> None:
    first = user(*ONCE)
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        events = await answer(fake, asked(first))
        assert seen(events)[:2] == [TextDelta("Let me look."), ToolCallStart(0, FIRST_ID, "look")]
        assert "".join(event.arguments for event in events if isinstance(event, ToolCallDelta)) == json.dumps(HERE)
        assert seen(events)[-2:] == [ToolCallEnd(0), Completed("tool_calls", ROUND)]
        assert fake.backend.slots.in_flight == 0

        events = await answer(fake, asked(first, CALLED, RESULT))

        # The CLI's own sum counts both rounds.
        usage = Usage(input=101, output=44, cache_read=303, cache_write=202)
        assert seen(events) == [TextDelta("Seen."), Completed("stop", usage)]
        assert told(fake) == [[{"type": "text", "text": "a cat"}]]
        assert len(fake.records()) == 1


async def test_what_a_child_says_of_its_waiting_does_not_end_it(tmp_path: Path) -> None:
    steps = [*ONCE[:2], client_results(tool_progress(30), line(type="future")), *DONE]
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        await answer(fake, asked(user(*steps)))

        assert words(await answer(fake, asked(user(*steps), CALLED, RESULT))) == "Seen."
        assert len(fake.records()) == 1


async def test_a_child_that_dies_while_it_waits_is_replaced_and_the_client_does_not_notice(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        await answer(fake, asked(user(*ONCE)))
        [run] = fake.records()
        os.kill(run.pid, signal.SIGKILL)
        await wait_gone(run.pid)

        # The script stands in the first message, and the last one has none.
        assert words(await answer(fake, asked(user(*ONCE), CALLED, RESULT))) == "ok"

        _, second = fake.records()
        use = second.queries[0][1][1][1]
        assert (use["type"], use["name"], use["input"]) == ("tool_use", "mcp__client__look", HERE)
        assert second.queries[0][2][1][0]["tool_use_id"] == FIRST_ID


BOTH = Message("assistant", (ToolUse(SECOND_ID, "look", HERE), ToolUse(FIRST_ID, "look", HERE)))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_all_results_are_given_in_whatever_order_they_come(tmp_path: Path, order: tuple[int, int]) -> None:
    results = [ToolResult(SECOND_ID, (Text("one"),)), ToolResult(FIRST_ID, (Text("two"),))]
    last = Message("user", tuple(results[index] for index in order))
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        await answer(fake, asked(user(*TWICE)))

        assert words(await answer(fake, asked(user(*TWICE), BOTH, last))) == "Seen."
        assert told(fake) == [[{"type": "text", "text": "one"}], [{"type": "text", "text": "two"}]]


@pytest.mark.parametrize(
    ("changed", "last"),
    [
        ({}, Message("user", (*RESULT.parts, Text("hurry")))),
        ({}, Message("user", (ToolResult("other", ()),))),
        ({"tools": (LOOK, Tool("more", "", {}))}, RESULT),
        ({"caller": "bob"}, RESULT),
    ],
    ids=["more than results", "another call's result", "other tools", "another caller"],
)
async def test_anything_else_starts_afresh(tmp_path: Path, changed: dict[str, Any], last: Message) -> None:
    async with open_fake(tmp_path, warm_conversations=2) as fake:
        await answer(fake, asked(user(*ONCE)))

        assert words(await answer(fake, asked(user(*ONCE), CALLED, last, **changed))) == "ok"
        assert len(fake.records()) == 2
        assert told(fake) == []


async def test_arguments_may_come_back_in_another_order(tmp_path: Path) -> None:
    steps = [text("Let me look."), client_call("look", b=1, a=2), client_results(), *DONE]
    called = Message("assistant", (Text("Let me look."), ToolUse(FIRST_ID, "look", {"a": 2, "b": 1})))
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        await answer(fake, asked(user(*steps)))

        assert words(await answer(fake, asked(user(*steps), called, RESULT))) == "Seen."


async def test_a_call_that_was_cut_is_not_waited_for(tmp_path: Path) -> None:
    steps = [client_call("look"), message_end("max_tokens"), hang()]
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        events = await answer(fake, asked(user(*steps)))

        assert isinstance(events[-1], Completed)
        assert events[-1].finish_reason == "length"
        assert fake.backend.children.conversations == 0


async def test_a_child_whose_results_never_come_leaves_nothing_behind(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("ocp_trio.claude.children.CONVERSATION_LIMIT", 0.2)
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        await answer(fake, asked(user(*ONCE)))
        [run] = fake.records()

        async def gone() -> bool:
            return fake.backend.children.conversations == 0

        await until(gone)
        await wait_gone(run.pid)


async def test_a_client_that_leaves_in_a_call_leaves_nothing_behind(tmp_path: Path) -> None:
    steps = [client_call("look"), hang()]
    async with open_fake(tmp_path, warm_conversations=1) as fake:
        async with fake.backend.stream(asked(user(*steps))) as batches:
            async for batch in batches:
                if any(isinstance(event, ToolCallEnd) for event in batch):
                    break
        [run] = fake.records()
        await wait_gone(run.pid)
        await trio.lowlevel.checkpoint()

        assert fake.backend.children.conversations == 0
