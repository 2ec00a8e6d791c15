"""Lines become typed values; what is not sound is counted and left out, line by line, field by field."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.claude.lines import (
    Abandoned,
    ApiEvent,
    ApiMessage,
    ApiUsage,
    Assistant,
    Block,
    Delta,
    Line,
    Other,
    RateLimitEvent,
    RateLimitInfo,
    Result,
    StreamEvent,
    System,
    User,
)
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.errors import LineTooLongError

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
DELTA = b'{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":%s}}}\n'


def said(text: str) -> StreamEvent:
    return StreamEvent(event=ApiEvent("content_block_delta", delta=Delta("text_delta", text)))


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (DELTA % b'"hi"', said("hi")),
        (
            b'{"type":"stream_event","event":{"type":"message_stop"},"abandoned_blocks":{"from_block_index":2}}',
            StreamEvent(event=ApiEvent("message_stop"), abandoned_blocks=Abandoned(2)),
        ),
        (
            b'{"message":{"id":"m","content":[{"type":"text","text":"hi"}]},"error":"unknown","type":"assistant"}',
            Assistant(message=ApiMessage("m", [Block("text", text="hi")]), error="unknown"),
        ),
        (
            b'{"type":"user","message":{"content":"hi"},"isSynthetic":true,"parent_tool_use_id":"t"}',
            User(parent_tool_use_id="t", message=ApiMessage(content="hi"), isSynthetic=True),
        ),
        (b'{"type":"system","subtype":"status","status":"compacting"}', System(subtype="status", status="compacting")),
        (
            b'{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000}}',
            RateLimitEvent(rate_limit_info=RateLimitInfo(status="rejected", resetsAt=1_800_000_000)),
        ),
        (
            b'{"duration_ms":1,"is_error":true,"result":"no","type":"result","usage":{"input_tokens":3}}',
            Result(is_error=True, result="no", usage=ApiUsage(3)),
        ),
        (b'{"type":"tool_progress","elapsed_time_seconds":30}', Other(name="tool_progress")),
    ],
)
def test_each_type_of_line_is_decoded(raw: bytes, line: Line) -> None:
    decoder = StreamJsonDecoder()

    assert decoder.feed(raw.strip() + b"\n") == [line]
    assert decoder.odd_lines == 0


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (StreamEvent(event=ApiEvent("ping")), "ping"),
        (Assistant(), "assistant"),
        (User(), "user"),
        (System(subtype="api_retry"), "api_retry"),
        (RateLimitEvent(), "rate_limit_event"),
        (Result(subtype="success"), "result"),
        (Other(name="tool_progress"), "tool_progress"),
        (Other(name="x" * 1000), "x" * 64),
        (Other(name="\ud83d"), UNKNOWN),
    ],
)
def test_a_line_tells_its_kind_in_few_words_that_can_be_encoded(line: Line, kind: str) -> None:
    assert line.kind == kind


@pytest.mark.parametrize(
    "raw",
    [
        *(b"npm WARN x", b"", b" \t", b"\r", b"\xff\x00"),
        *(b"[]", b"5", b"null", b'"type"', b"{}", b'{"type":5}', b'{"type":', b'{"type":"x"} {}'),
        *(b"[" * 100_000, b'{"type":"result","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ],
    ids=range(15),
)
def test_what_is_no_line_is_counted_and_left_out(raw: bytes) -> None:
    decoder = StreamJsonDecoder()

    assert decoder.feed(DELTA % b'"a"' + raw + b"\n" + DELTA % b'"b"') == [said("a"), said("b")]
    assert decoder.odd_lines == 1


@pytest.mark.parametrize("line", [b"\n", b" \t\r\n", b"npm WARN x\n", b"\xff\x00\n", b"[]\n"])
def test_a_flood_of_what_cannot_be_an_object_is_counted_without_being_parsed(
    line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    monkeypatch.setattr(json, "loads", parsed.append)
    decoder = StreamJsonDecoder()

    assert decoder.feed(line * 1000 + DELTA % b'"a"') == [said("a")]
    assert (decoder.odd_lines, parsed) == (1000, [])


def test_a_field_of_another_type_is_left_out_and_the_line_counted() -> None:
    decoder = StreamJsonDecoder()

    lines = decoder.feed(b'{"type":"result","result":5,"is_error":true,"usage":"none","api_error_status":429}\n')

    assert lines == [Result(is_error=True, api_error_status=429)]
    assert decoder.odd_lines == 1


def test_a_delta_whose_text_is_no_text_loses_its_own_line_only() -> None:
    decoder = StreamJsonDecoder()

    lines = decoder.feed(DELTA % b'"one"' + DELTA % b"5" + DELTA % b'"three"')

    assert lines == [said("one"), StreamEvent(), said("three")]
    assert decoder.odd_lines == 1


def test_lone_surrogates_are_kept_for_whoever_joins_them() -> None:
    decoder = StreamJsonDecoder()

    assert decoder.feed(DELTA % rb'"\ud83d"' + DELTA % rb'"\ude00"') == [said("\ud83d"), said("\ude00")]
    assert decoder.odd_lines == 0


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert StreamJsonDecoder().feed(DELTA % b'"a\xffb"') == [said(f"a{UNKNOWN}b")]


def test_a_last_line_without_line_feed_comes_with_the_end() -> None:
    decoder = StreamJsonDecoder()

    assert decoder.feed((DELTA % b'"a"')[:-1]) == []
    assert decoder.flush() == [said("a")]
    assert decoder.flush() == []


def test_half_a_last_line_is_none() -> None:
    decoder = StreamJsonDecoder()
    decoder.feed((DELTA % b'"a"')[:-5])

    assert decoder.flush() == []
    assert decoder.odd_lines == 1


def test_a_line_over_the_bound_is_refused() -> None:
    decoder = StreamJsonDecoder(max_line=100)

    with pytest.raises(LineTooLongError, match="100 bytes"):
        decoder.feed(b"x" * 101)


def test_a_message_of_plain_text_has_one_block() -> None:
    assert ApiMessage(content="hi").blocks == [Block("text", text="hi")]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    ["event", "message", "usage", "result", "is_error", "subtype", "status", "rate_limit_info", "abandoned_blocks", "x"]
)
types = st.sampled_from(["stream_event", "assistant", "user", "system", "rate_limit_event", "result", "other", "new"])


@given(types, st.dictionaries(fields, json_values))
def test_an_object_with_a_type_is_always_a_line(kind: str, rest: dict[str, object]) -> None:
    raw = json.dumps({"type": kind, **rest}).encode() + b"\n"

    assert len(StreamJsonDecoder().feed(raw)) == 1
