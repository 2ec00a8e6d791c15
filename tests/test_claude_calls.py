"""A call of a caller's tool ends the answer, however it came; the CLI's own calls stay unseen."""

from typing import Any

import pytest
from claude_lines import (
    Json,
    abandoned,
    assistant,
    block,
    event,
    feed,
    message_delta,
    message_start,
    message_stop,
    result,
    stop,
    streamed,
    tool_use,
)

from ocp_trio.claude.reconcile import Reconciler
from ocp_trio.claude.tool_names import ToolNames
from ocp_trio.completion import (
    Activity,
    Completed,
    Failed,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolUse,
    Usage,
)

NAME = "mcp__client__look"
ASKED = {"type": "control_request", "request_id": "r", "request": {"message": {"method": "tools/call", "id": 1}}}


def call(index: int = 0, call_id: str = "c1", *pieces: str, name: str = NAME) -> list[Json]:
    deltas = [
        event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})
        for piece in pieces
    ]
    return [block(index, "tool_use", id=call_id, name=name), *deltas, stop(index)]


def reconciler(**options: Any) -> Reconciler:
    return Reconciler(ToolNames(["look"]), **options)


def seen(found: Reconciler, *lines: Json) -> list[object]:
    events = [each for each in feed(found, *lines) if not isinstance(each, Activity)]
    return [str(each.error) if isinstance(each, Failed) else each for each in events]


END = [message_delta("tool_use", output_tokens=9), message_stop()]


def test_calls_stream_with_indices_from_0_and_end_the_answer_with_its_message() -> None:
    lines = [message_start(input_tokens=3), *call(0, "c1", '{"a"', ":1}"), *call(1, "c2"), *END]
    found = reconciler()

    assert seen(found, *lines) == [
        ToolCallStart(0, "c1", "look"),
        ToolCallDelta(0, '{"a"'),
        ToolCallDelta(0, ":1}"),
        ToolCallEnd(0),
        ToolCallStart(1, "c2", "look"),
        ToolCallDelta(1, "{}"),
        ToolCallEnd(1),
        Completed("tool_calls", Usage(input=3, output=9)),
    ]
    assert found.calls.uses() == (ToolUse("c1", "look", {"a": 1}), ToolUse("c2", "look", {}))


def test_the_aggregate_of_a_streamed_call_says_nothing_new() -> None:
    whole = assistant({**tool_use("c1"), "name": NAME})
    first, *rest = call(0, "c1", "{}")

    assert len(seen(reconciler(), message_start(), first, rest[0], whole, rest[1], *END)) == 4


def test_a_call_that_was_not_streamed_ends_the_answer_when_it_is_asked_for() -> None:
    whole = assistant({"type": "tool_use", "id": "c1", "name": NAME, "input": {"a": 1}}, stop_reason="tool_use")

    assert seen(reconciler(), whole, ASKED) == [
        ToolCallStart(0, "c1", "look"),
        ToolCallDelta(0, '{"a":1}'),
        ToolCallEnd(0),
        Completed("tool_calls", Usage()),
    ]


@pytest.mark.parametrize("name", ["Bash", "look", "mcp__files__look", "mcp__client__other"])
def test_a_call_of_another_tool_is_not_seen(name: str) -> None:
    lines = [message_start(), *call(0, "c1", "{}", name=name), *END, *streamed("Done.", message_id="m2")]

    assert seen(reconciler(), *lines, result())[0] == TextDelta("Done.")


def test_a_message_that_breaks_off_in_a_call_is_an_error() -> None:
    lines = [message_start(), *call(0, "c1", '{"a"'), abandoned()]

    assert seen(reconciler(), *lines)[-1] == "upstream broke off after part of a tool call had been sent"


@pytest.mark.parametrize(("stop_reason", "finish"), [("max_tokens", "length"), ("refusal", "content_filter")])
def test_an_answer_that_is_cut_in_its_calls_says_so(stop_reason: str, finish: str) -> None:
    [*_, last] = seen(reconciler(), message_start(), *call(0, "c1", '{"a'), message_delta(stop_reason), message_stop())

    assert isinstance(last, Completed)
    assert last.finish_reason == finish


def test_where_one_call_is_allowed_others_are_dropped() -> None:
    found = reconciler(parallel=False)

    events = seen(found, message_start(), *call(0, "c1"), *call(1, "c2"), *END)

    assert [each.id for each in events if isinstance(each, ToolCallStart)] == ["c1"]
    assert found.calls.dropped


def test_arguments_that_are_no_object_cannot_stand_in_a_history() -> None:
    for arguments in ('{"a', "[]"):
        found = reconciler()
        seen(found, message_start(), *call(0, "c1", arguments), *END)
        assert found.calls.uses() is None


def test_a_resumed_turn_counts_its_own_messages_only() -> None:
    said = result(usage={"input_tokens": 1000, "output_tokens": 1000})

    assert seen(reconciler(resumed=True), *streamed("Done."), said)[-1] == Completed("stop", Usage(input=3, output=5))
