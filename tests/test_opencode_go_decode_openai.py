"""OpenAI's chunks become one answer that ends exactly once, in whatever way the servers behind write them."""

import json
from typing import Any

import pytest
from mock_opencode import chunk, usage_chunk
from sse_script import Usage as ScriptUsage
from sse_script import frame

from ocp_trio.completion import (
    Activity,
    Completed,
    Event,
    Failed,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.errors import UpstreamError, UpstreamIncompleteError, UpstreamOverloadedError, UpstreamRateLimitError
from ocp_trio.opencode_go.decode_openai import OpenAiAnswer
from ocp_trio.opencode_go.sse_decoder import SseDecoder

DONE = frame("[DONE]")
FINISH = chunk(finish_reason="stop")
COST = Usage(input=10, output=5, cache_read=2)
COST_CHUNK = usage_chunk(ScriptUsage(input=10, output=5, cache_read=2))


def call(index: int | None = None, arguments: Any = None, **fields: Any) -> bytes:
    """Return a chunk with a piece of a tool call."""
    name = fields.pop("name", None)
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    piece = {**({} if index is None else {"index": index}), **fields, "function": function}
    return chunk({"tool_calls": [piece]})


def read(*pieces: bytes) -> list[Event]:
    """Return the events that these pieces mean, without those that only show life."""
    return [event for event in read_all(*pieces) if not isinstance(event, Activity)]


def read_all(*pieces: bytes) -> list[Event]:
    decoder, answer = SseDecoder(), OpenAiAnswer()
    return [event for piece in pieces for event in answer.feed(decoder.feed(piece))]


WHOLE = (
    b": ping\n\n"
    + chunk({"role": "assistant", "content": ""})
    + chunk({"reasoning_content": "Hm — "})
    + chunk({"reasoning_content": "é"})
    + chunk({"content": "Hel"})
    + chunk({"content": "lo 😀"})
    + call(0, "", id="c1", name="look")
    + call(0, '{"x"')
    + call(0, ":1}")
    + call(1, "{}", id="c2", name="wait")
    + chunk(finish_reason="tool_calls")
    + COST_CHUNK
    + DONE
)
TOLD = [
    ThinkingDelta("Hm — "),
    ThinkingDelta("é"),
    ThinkingEnd(),
    TextDelta("Hel"),
    TextDelta("lo 😀"),
    TextEnd(),
    ToolCallStart(0, "c1", "look"),
    ToolCallDelta(0, '{"x"'),
    ToolCallDelta(0, ":1}"),
    ToolCallEnd(0),
    ToolCallStart(1, "c2", "wait"),
    ToolCallDelta(1, "{}"),
    ToolCallEnd(1),
    Completed("tool_calls", COST),
]


def test_a_whole_answer_is_told() -> None:
    assert read(WHOLE) == TOLD


def test_it_is_the_same_cut_in_two_anywhere() -> None:
    for cut in range(len(WHOLE)):
        assert read(WHOLE[:cut], WHOLE[cut:]) == TOLD


def test_it_is_the_same_byte_by_byte() -> None:
    assert read(*(bytes([byte]) for byte in WHOLE)) == TOLD


def test_each_event_of_the_wire_is_told_at_least_once() -> None:
    pieces = [chunk({"role": "assistant"}), chunk(), frame("{}"), frame("x", event="surprise"), COST_CHUNK]

    assert [read_all(piece) for piece in pieces] == [
        [Activity("chunk")],
        [Activity("chunk")],
        [Activity("message")],
        [Activity("unreadable")],
        [Activity("usage", COST)],
    ]


def test_comments_are_told_as_nothing() -> None:
    assert read_all(b": ping\n\n: ping\n\n", b":\n") == []


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"type": "reasoning.summary", "summary": "m"}]},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}], "content": ""},
        {"reasoning_content": "hm", "reasoning": "hm"},
    ],
)
def test_reasoning_is_read_once_under_each_of_its_names(delta: dict[str, Any]) -> None:
    assert read(chunk(delta)) == [ThinkingDelta("hm")]


def test_the_last_text_may_come_with_the_finish_reason() -> None:
    assert read(chunk({"content": "a"}, finish_reason="stop") + DONE) == [TextDelta("a"), TextEnd(), Completed("stop")]


@pytest.mark.parametrize("order", [(FINISH, COST_CHUNK), (COST_CHUNK, FINISH)])
def test_usage_may_come_after_the_finish_reason_or_before(order: tuple[bytes, ...]) -> None:
    assert read(chunk({"content": "a"}), *order, DONE)[-1] == Completed("stop", COST)


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 5, "prompt_cache_hit_tokens": 2}, COST),
        ({"prompt_tokens": 12, "completion_tokens": 5, "cached_tokens": 2}, COST),
        ({"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}, COST),
        (
            {"prompt_tokens": 12, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(input=12, output=5, reasoning=3),
        ),
        ({"prompt_tokens": 12, "completion_tokens": None, "prompt_tokens_details": None}, Usage(input=12)),
    ],
)
def test_tokens_are_counted_as_each_server_tells_them(told: dict[str, Any], usage: Usage) -> None:
    assert read(chunk(finish_reason="stop", usage=told), DONE) == [Completed("stop", usage)]


def test_usage_may_stand_in_the_choice() -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}

    assert read(frame(json.dumps({"choices": [choice]})), DONE) == [Completed("stop", Usage(input=3, output=4))]


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("something_new", "stop"),
    ],
)
def test_a_finish_reason_becomes_one_of_the_standard_set(wire: str, reason: str) -> None:
    [completed] = read(chunk(finish_reason=wire), DONE)

    assert isinstance(completed, Completed)
    assert completed.finish_reason == reason


def test_an_answer_that_stops_after_tool_calls_has_called_tools() -> None:
    assert read(call(0, "{}", id="c", name="f"), FINISH, DONE)[-1] == Completed("tool_calls")


@pytest.mark.parametrize(
    ("reason", "error"),
    [("insufficient_system_resource", UpstreamOverloadedError), ("network_error", UpstreamError)],
)
def test_a_finish_reason_that_is_an_error_fails(reason: str, error: type[Exception]) -> None:
    *_, last = read(chunk({"content": "a"}), chunk(finish_reason=reason), DONE)

    assert isinstance(last, Failed)
    assert type(last.error) is error


# Tool calls


def test_id_and_name_may_be_repeated() -> None:
    told = read(call(0, "{", id="c", name="f"), call(0, "}", id="c", name="f"), call(0, "", id=""))

    assert told == [ToolCallStart(0, "c", "f"), ToolCallDelta(0, "{"), ToolCallDelta(0, "}")]


def test_calls_may_all_have_the_same_number_or_none() -> None:
    expected = [
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, "{"),
        ToolCallDelta(0, "}"),
        ToolCallEnd(0),
        ToolCallStart(1, "c2", "g"),
        ToolCallDelta(1, "{}"),
    ]
    for index in (0, None):
        assert (
            read(call(index, "{", id="c1", name="f"), call(index, "}"), call(index, "{}", id="c2", name="g"))
            == expected
        )


def test_pieces_of_two_calls_may_alternate() -> None:
    told = read(call(0, "{", id="a", name="f"), call(1, "[", id="b", name="g"), call(0, "}"), call(1, "]"))

    arguments = ["", ""]
    for piece in told:
        if isinstance(piece, ToolCallDelta):
            arguments[piece.index] += piece.arguments
    assert arguments == ["{}", "[]"]


def test_arguments_may_come_as_an_object() -> None:
    assert read(call(0, {"x": 1}, id="c", name="f"))[1:] == [ToolCallDelta(0, '{"x":1}')]


def test_a_call_without_an_id_is_given_one() -> None:
    [first] = read(call(0, "", name="f"))
    [second] = read(call(0, "", name="f"))

    assert isinstance(first, ToolCallStart)
    assert isinstance(second, ToolCallStart)
    assert first.id.startswith("call_")
    assert first.id != second.id


# Ends


def test_done_without_a_finish_reason_completes_visible_text() -> None:
    assert read(chunk({"content": "a"}), DONE) == [TextDelta("a"), TextEnd(), Completed("stop")]


@pytest.mark.parametrize("before", [b"", chunk({"reasoning_content": "hm"}), call(0, "{}", id="c", name="f")])
def test_but_nothing_else(before: bytes) -> None:
    *_, last = read(before, DONE)

    assert isinstance(last, Failed)
    assert isinstance(last.error, UpstreamIncompleteError)


@pytest.mark.parametrize(
    "error",
    [
        frame('{"error":{"type":"rate_limit_error","message":"slow down"}}'),
        frame('{"error":{"code":"rate_limit_exceeded","message":"slow down"},"choices":[]}'),
        frame('{"type":"error","error":{"type":"RateLimitError","message":"slow down"}}'),
        frame('{"error":{"type":"rate_limit_error"}}', event="error"),
        frame('{"code":"rate_limit_exceeded","message":"slow down","request_id":"r"}'),
    ],
)
def test_an_error_in_mid_stream_is_the_only_end(error: bytes) -> None:
    *_, last = read(chunk({"content": "a"}), error, FINISH, DONE, error)

    assert isinstance(last, Failed)
    assert isinstance(last.error, UpstreamRateLimitError)


def test_an_error_event_without_json_is_an_error_all_the_same() -> None:
    [failed] = read(frame("it broke <html>", event="error"))

    assert isinstance(failed, Failed)
    assert str(failed.error) == "upstream failed in mid-answer"


def test_an_error_after_the_finish_reason_does_not_undo_the_answer() -> None:
    told = read(chunk({"content": "a"}), FINISH, frame('{"error":{"type":"rate_limit_error"}}'), COST_CHUNK, DONE)

    assert told == [TextDelta("a"), TextEnd(), Completed("stop")]


def test_nothing_is_told_after_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ocp_trio.opencode_go")

    told = read(chunk({"content": "a"}), FINISH + DONE + chunk({"content": "b"}), DONE, FINISH)

    assert told == [TextDelta("a"), TextEnd(), Completed("stop")]
    assert [record.message for record in caplog.records] == ["late_event", "late_event"]


def test_no_end_is_invented_for_a_call_that_breaks_off() -> None:
    assert read(call(0, '{"x', id="c", name="f")) == [ToolCallStart(0, "c", "f"), ToolCallDelta(0, '{"x')]


# What is hard to read


def test_a_surrogate_pair_split_over_two_deltas_is_joined() -> None:
    raw = '{"choices":[{"index":0,"delta":{"content":"%s"}}]}'

    told = read(frame(raw % r"a\ud83d"), frame(raw % r"\ude00b"), frame(raw % r"c\ud83d"), FINISH)

    assert told == [TextDelta("a"), TextDelta("😀b"), TextDelta("c"), TextDelta("\ufffd"), TextEnd()]


def test_what_cannot_be_read_is_counted_and_is_life() -> None:
    decoder, answer = SseDecoder(), OpenAiAnswer()
    odd = [
        frame(r'{"choices":7,"x":"\ud83d"}'),
        frame("no json"),
        frame('{"choices":7}'),
        frame('{"choices":[{"delta":{"content":7}}]}'),
        frame("[" * 10_000),
    ]

    told = [event for piece in odd for event in answer.feed(decoder.feed(piece))]

    assert told == [Activity("unreadable")] * 5
    assert answer.odd_events == 5


# What the guard is told


@pytest.mark.parametrize(
    ("piece", "told"),
    [
        (chunk({"role": "assistant"}), set()),
        (call(0, "", id="c", name="f"), {"visible", "inside_tool_call"}),
        (call(0, "{", id="c", name="f"), {"content", "visible", "inside_tool_call"}),
        (chunk({"content": "a"}), {"content", "visible"}),
        (chunk({"reasoning": "a"}), {"content"}),
        (FINISH, {"finish"}),
        (chunk({"content": "a"}) + FINISH + DONE, {"content", "visible", "finish", "terminal"}),
        (frame('{"error":{}, "code":1}'), {"terminal"}),
    ],
)
def test_the_guard_is_told_what_a_batch_means(piece: bytes, told: set[str]) -> None:
    answer = OpenAiAnswer()

    sighting = answer.sighting(answer.feed(SseDecoder().feed(piece)))

    assert {name for name, value in sighting._asdict().items() if value is True} == told
