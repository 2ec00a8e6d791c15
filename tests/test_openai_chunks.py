"""A stream of chunks reads the same however its events were batched."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder
from openai.types.chat import ChatCompletionChunk

from ocp_trio.completion import (
    Activity,
    Completed,
    Event,
    Refusal,
    Started,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.openai.chunks import ChunkEncoder, new_completion_id
from ocp_trio.openai.errors import ErrorObject

USAGE = Usage(input=3, output=5, cache_read=1000, cache_write=200, reasoning=2)
STOP = Completed("stop", USAGE)
USAGE_OBJECT = {
    "prompt_tokens": 1203,
    "completion_tokens": 5,
    "total_tokens": 1208,
    "prompt_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 200},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
CALL = (
    ToolCallStart(0, "call_1", "get_weather"),
    ToolCallDelta(0, '{"city":'),
    ToolCallDelta(0, '"Paris"}'),
    ToolCallEnd(0),
)
INVISIBLE: tuple[Event, ...] = (
    Started(),
    Activity("ping"),
    TextDelta(""),
    TextEnd(),
    ThinkingEnd(),
    ToolCallEnd(0),
)

texts = st.text(max_size=20)
events = st.lists(
    st.one_of(
        st.builds(TextDelta, texts),
        st.builds(ThinkingDelta, texts),
        st.builds(Refusal, texts),
        st.builds(ToolCallStart, st.integers(0, 3), texts, texts),
        st.builds(ToolCallDelta, st.integers(0, 3), texts),
        st.sampled_from(INVISIBLE),
    ),
    max_size=12,
).map(tuple)


def encoder(*, include_usage: bool = False, show_reasoning: bool = False, model: str = "m") -> ChunkEncoder:
    return ChunkEncoder(
        completion_id="chatcmpl-1",
        created=7,
        model=model,
        include_usage=include_usage,
        show_reasoning=show_reasoning,
    )


def decode(stream: bytes) -> list[Any]:
    events = SSEDecoder().iter_bytes(iter([stream]))
    return [event.data if event.data == "[DONE]" else json.loads(event.data) for event in events]


def deltas(stream: bytes) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in decode(stream)]


def test_the_first_chunk_has_the_role_and_empty_content() -> None:
    assert encoder().role() == (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":'
        b'[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
    )


def test_a_text_delta_is_one_chunk() -> None:
    assert encoder().encode((TextDelta('a "b"\n'),)) == (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":'
        b'[{"index":0,"delta":{"content":"a \\"b\\"\\n"},"finish_reason":null}]}\n\n'
    )


def test_the_end_is_a_finish_chunk_and_done() -> None:
    assert encoder().finish(Completed("length", USAGE)) == (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":'
        b'[{"index":0,"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
    )


def test_usage_comes_in_a_chunk_of_its_own_and_is_null_on_all_others() -> None:
    chunks = encoder(include_usage=True)

    stream = chunks.role() + chunks.encode((TextDelta("a"), *CALL)) + chunks.finish(STOP)

    *others, usage, done = decode(stream)
    assert [chunk["usage"] for chunk in others] == [None] * len(others)
    assert others[-1]["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"], done) == ([], USAGE_OBJECT, "[DONE]")


def test_an_error_is_a_frame_without_choices_and_done() -> None:
    error = ErrorObject("upstream was silent", "timeout_error", None, "stalled")

    assert encoder(include_usage=True).error(error) == (
        b'data: {"error":{"message":"upstream was silent","type":"timeout_error","param":null,"code":"stalled"}}\n\n'
        b"data: [DONE]\n\n"
    )


def test_a_heartbeat_is_a_whole_chunk_that_says_nothing() -> None:
    assert encoder().empty_delta() == (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":'
        b'[{"index":0,"delta":{},"finish_reason":null}]}\n\n'
    )


def test_a_refusal_is_a_delta_of_its_own() -> None:
    assert deltas(encoder().encode((Refusal("No."),))) == [{"refusal": "No."}]


def test_a_tool_call_begins_with_its_name_and_goes_on_with_its_arguments() -> None:
    assert deltas(encoder(model="100%d").encode(CALL)) == [
        {
            "tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"Paris"}'}}]},
    ]


def test_reasoning_is_told_only_if_asked_for_and_without_content() -> None:
    batch = (ThinkingDelta("hm"), ThinkingEnd(), TextDelta("a"))

    assert deltas(encoder().encode(batch)) == [{"content": "a"}]
    assert deltas(encoder(show_reasoning=True).encode(batch)) == [{"reasoning_content": "hm"}, {"content": "a"}]


@pytest.mark.parametrize("batch", [(), INVISIBLE])
def test_a_batch_that_a_client_does_not_see_is_no_bytes(batch: tuple[Event, ...]) -> None:
    assert encoder(show_reasoning=True).encode(batch) == b""


@given(texts, st.lists(st.text()))
def test_any_text_comes_through_as_it_was(model: str, pieces: list[str]) -> None:
    stream = encoder(model=model).encode(tuple(map(TextDelta, pieces)))

    assert [delta["content"] for delta in deltas(stream)] == [piece for piece in pieces if piece]
    assert {chunk["model"] for chunk in decode(stream)} <= {model}
    assert b"\r" not in stream


@given(events, st.lists(st.integers(0, 12)), st.booleans(), st.booleans())
def test_batches_cut_anyhow_give_the_same_bytes(
    batch: tuple[Event, ...], cuts: list[int], include_usage: bool, show_reasoning: bool
) -> None:
    chunks = encoder(include_usage=include_usage, show_reasoning=show_reasoning)
    edges = [0, *sorted(min(cut, len(batch)) for cut in cuts), len(batch)]

    pieces = [chunks.encode(batch[start:end]) for start, end in pairwise(edges)]

    assert b"".join(pieces) == chunks.encode(batch)


@given(events)
def test_every_chunk_is_valid_for_the_official_client(batch: tuple[Event, ...]) -> None:
    chunks = encoder(include_usage=True)

    *stream, done = decode(chunks.role() + chunks.encode(batch) + chunks.finish(STOP))

    assert done == "[DONE]"
    for chunk in stream:
        ChatCompletionChunk.model_validate(chunk, strict=True)


def test_no_two_completions_share_an_id() -> None:
    ids = {new_completion_id() for _ in range(1000)}

    assert len(ids) == 1000
    assert all(each.startswith("chatcmpl-") and len(each) == 33 for each in ids)
