"""A whole answer is one completion object."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion

from ocp_trio.completion import (
    Activity,
    Completed,
    Event,
    FinishReason,
    Refusal,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.openai.chunks import CompletionBuilder

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


def built(*batch: Event, show_reasoning: bool = False, completed: Completed = STOP) -> dict[str, Any]:
    builder = CompletionBuilder(completion_id="chatcmpl-1", created=7, model="m", show_reasoning=show_reasoning)
    builder.add(batch)
    completion: dict[str, Any] = json.loads(builder.build(completed))
    return completion


def test_a_whole_answer_is_a_completion_object() -> None:
    assert built(TextDelta("a"), TextDelta("b"), TextEnd(), Activity("ping")) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "ab", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE_OBJECT,
    }


def test_an_answer_of_calls_alone_has_no_content() -> None:
    message = built(*CALL)["choices"][0]["message"]

    assert message == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
            }
        ],
    }


def test_an_empty_answer_has_empty_content() -> None:
    assert built()["choices"][0]["message"]["content"] == ""


def test_a_refusal_stands_in_the_place_of_content() -> None:
    choice = built(Refusal("No."))["choices"][0]

    assert choice["message"] == {"role": "assistant", "content": None, "refusal": "No."}
    assert ChatCompletion.model_validate(built(Refusal("No.")), strict=True).choices[0].message.refusal == "No."


def test_a_whole_answer_tells_its_reasoning_only_if_asked_for() -> None:
    batch = (ThinkingDelta("h"), ThinkingDelta("m"), TextDelta("a"))

    assert "reasoning_content" not in built(*batch)["choices"][0]["message"]
    assert built(*batch, show_reasoning=True)["choices"][0]["message"]["reasoning_content"] == "hm"


@given(st.lists(st.text()), st.sampled_from(["stop", "length", "tool_calls", "content_filter"]))
def test_a_whole_answer_is_valid_for_the_official_client(pieces: list[str], reason: FinishReason) -> None:
    answer = built(*map(TextDelta, pieces), *CALL, completed=Completed(reason, USAGE))

    completion = ChatCompletion.model_validate(answer, strict=True)
    assert completion.choices[0].message.content == ("".join(pieces) or None)
    assert completion.choices[0].finish_reason == reason


def test_the_text_so_far_can_be_read() -> None:
    builder = CompletionBuilder(completion_id="chatcmpl-1", created=7, model="m")
    builder.add((TextDelta("a"), ThinkingDelta("x")))
    builder.add((TextDelta("b"),))

    assert builder.text == "ab"
