"""Anthropic's events become one answer that ends exactly once, in whatever way the servers behind write them."""

from typing import Any

import pytest
from mock_opencode import event
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
from ocp_trio.errors import InvalidRequestError, UpstreamError, UpstreamIncompleteError, UpstreamOverloadedError
from ocp_trio.opencode_go.decode_anthropic import AnthropicAnswer
from ocp_trio.opencode_go.sse_decoder import SseDecoder

PING = event("ping")
STOP = event("message_stop")


def start(**usage: int) -> bytes:
    return event("message_start", message={"id": "m", "role": "assistant", "content": [], "usage": usage})


def begin(index: int, kind: str, **fields: Any) -> bytes:
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(index: int, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta=fields)


def end(index: int) -> bytes:
    return event("content_block_stop", index=index)


def finish(reason: str | None, **usage: Any) -> bytes:
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)


def read_all(*pieces: bytes) -> list[Event]:
    decoder, answer = SseDecoder(), AnthropicAnswer()
    return [event for piece in pieces for event in answer.feed(decoder.feed(piece))]


def read(*pieces: bytes) -> list[Event]:
    """Return the events that these pieces mean, without those that only show life."""
    return [event for event in read_all(*pieces) if not isinstance(event, Activity)]


WHOLE = (
    start(input_tokens=10, cache_read_input_tokens=2, cache_creation_input_tokens=1, output_tokens=1)
    + begin(0, "thinking", thinking="", signature="")
    + PING
    + delta(0, type="thinking_delta", thinking="Hm — é")
    + delta(0, type="signature_delta", signature="sig")
    + end(0)
    + begin(1, "text", text="")
    + delta(1, type="text_delta", text="Hel")
    + delta(1, type="text_delta", text="lo 😀")
    + end(1)
    + begin(2, "tool_use", id="c1", name="look", input={})
    + delta(2, type="input_json_delta", partial_json="")
    + delta(2, type="input_json_delta", partial_json='{"x"')
    + delta(2, type="input_json_delta", partial_json=":1}")
    + end(2)
    + finish("tool_use", output_tokens=5)
    + STOP
)
TOLD = [
    ThinkingDelta("Hm — é"),
    ThinkingEnd(),
    TextDelta("Hel"),
    TextDelta("lo 😀"),
    TextEnd(),
    ToolCallStart(0, "c1", "look"),
    ToolCallDelta(0, '{"x"'),
    ToolCallDelta(0, ":1}"),
    ToolCallEnd(0),
    Completed("tool_calls", Usage(input=10, output=5, cache_read=2, cache_write=1)),
]


def test_a_whole_answer_is_told() -> None:
    assert read(WHOLE) == TOLD


def test_it_is_the_same_cut_in_two_anywhere() -> None:
    for cut in range(len(WHOLE)):
        assert read(WHOLE[:cut], WHOLE[cut:]) == TOLD


def test_it_is_the_same_byte_by_byte() -> None:
    assert read(*(bytes([byte]) for byte in WHOLE)) == TOLD


def test_each_event_of_the_wire_is_told_at_least_once() -> None:
    pieces = [begin(0, "text", text=""), end(0), event("surprise"), frame("nonsense"), delta(0, type="new_delta")]

    assert [event for piece in pieces for event in read_all(piece)] == [
        Activity("content_block_start"),
        Activity("content_block_stop"),
        Activity("surprise"),
        Activity("unreadable"),
        Activity("content_block_delta"),
    ]


def test_a_ping_is_told_as_nothing_like_a_comment() -> None:
    assert read_all(PING, b": ping\n\n", PING) == []


def test_counts_of_the_prompt_may_come_at_the_end() -> None:
    told = read(start(input_tokens=0, output_tokens=0), finish("end_turn", input_tokens=7, output_tokens=3), STOP)

    assert told == [Completed("stop", Usage(input=7, output=3))]


def test_zeros_and_nulls_at_the_end_do_not_undo_what_was_counted() -> None:
    told = read(start(input_tokens=7, output_tokens=3), finish("end_turn", input_tokens=0, output_tokens=None), STOP)

    assert told == [Completed("stop", Usage(input=7, output=3))]


def test_what_an_answer_has_cost_so_far_is_told_as_soon_as_it_is_known() -> None:
    assert read_all(start(input_tokens=7)) == [Activity("message_start", Usage(input=7))]


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("tool_use", "tool_calls"),
        ("something_new", "stop"),
    ],
)
def test_a_stop_reason_becomes_a_finish_reason_of_the_standard_set(wire: str, reason: str) -> None:
    [completed] = read(finish(wire), STOP)

    assert isinstance(completed, Completed)
    assert completed.finish_reason == reason


def test_the_input_of_a_call_may_come_at_once() -> None:
    assert read(begin(0, "tool_use", id="c", name="f", input={"x": 1}), end(0)) == [
        ToolCallStart(0, "c", "f"),
        ToolCallDelta(0, '{"x":1}'),
        ToolCallEnd(0),
    ]


def test_a_block_may_begin_with_text() -> None:
    assert read(begin(0, "text", text="a"), begin(1, "thinking", thinking="b")) == [
        TextDelta("a"),
        TextEnd(),
        ThinkingDelta("b"),
    ]


def test_a_stop_without_a_reason_completes_visible_text() -> None:
    assert read(delta(0, type="text_delta", text="a"), STOP) == [TextDelta("a"), TextEnd(), Completed("stop")]


def test_but_not_reasoning_alone() -> None:
    *_, last = read(delta(0, type="thinking_delta", thinking="a"), finish(None), STOP)

    assert isinstance(last, Failed)
    assert isinstance(last.error, UpstreamIncompleteError)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (event("error", error={"type": "overloaded_error", "message": "Overloaded"}), UpstreamOverloadedError),
        (event("error", error={"type": "api_error", "message": "<html>"}), UpstreamError),
        (event("error", error={"type": "invalid_request_error", "message": "<html>"}), InvalidRequestError),
        (frame("broken", event="error"), UpstreamError),
        (frame('{"type":"error","error":{"type":"overloaded_error"}}'), UpstreamOverloadedError),
    ],
)
def test_an_error_in_mid_stream_is_the_only_end(error: bytes, kind: type[Exception]) -> None:
    *_, last = read(delta(0, type="text_delta", text="a"), error, finish("end_turn"), STOP)

    assert isinstance(last, Failed)
    assert type(last.error) is kind
    assert "html" not in str(last.error)


def test_two_stops_and_a_foreign_done_are_one_end() -> None:
    told = read(delta(0, type="text_delta", text="a"), finish("end_turn"), STOP, STOP, frame("[DONE]"))

    assert told == [TextDelta("a"), TextEnd(), Completed("stop")]
