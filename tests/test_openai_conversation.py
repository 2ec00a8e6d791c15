"""Whatever a client sends as messages becomes turns that alternate and end with the user's."""

import json
from typing import Any

import msgspec
import pytest

from ocp_trio.completion import Image, Message, Text, ToolResult, ToolUse
from ocp_trio.errors import InvalidRequestError, RequestTooLargeError
from ocp_trio.openai.conversation import Conversation, parse_arguments, read_conversation
from ocp_trio.openai.images import DEFAULT_IMAGE_LIMITS, ImageLimits
from ocp_trio.openai.messages import WireMessage

PIXEL = "data:image/png;base64,aGk="
HI = {"role": "user", "content": "hi"}

decoder: msgspec.json.Decoder[tuple[WireMessage, ...]] = msgspec.json.Decoder(tuple[WireMessage, ...])


def read(*messages: dict[str, Any], limits: ImageLimits = DEFAULT_IMAGE_LIMITS) -> Conversation:
    return read_conversation(decoder.decode(json.dumps(messages)), limits)


def refused_param(*messages: dict[str, Any]) -> str | None:
    with pytest.raises(InvalidRequestError) as caught:
        read(*messages)
    assert caught.value.code == "unsupported_value"
    return caught.value.param


def call(call_id: str, name: str = "f", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*call_ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(each) for each in call_ids]}


def result(call_id: str, content: object = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(*parts: Text | Image | ToolResult) -> Message:
    return Message("user", parts)


def assistant(*parts: Text | ToolUse) -> Message:
    return Message("assistant", parts)


def test_one_question_is_one_turn() -> None:
    assert read(HI) == Conversation("", (user(Text("hi")),))


def test_text_parts_stay_apart() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}}]

    assert read({"role": "user", "content": parts}).messages == (user(Text("a"), Text("b")),)


def test_system_and_developer_texts_are_all_kept_in_order_wherever_they_stand() -> None:
    conversation = read(
        {"role": "developer", "content": "one"},
        {"role": "system", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
        HI,
        {"role": "developer", "content": "four"},
    )

    assert conversation == Conversation("one\n\ntwo\n\nthree\n\nfour", (user(Text("hi")),))


def test_neighbours_of_one_role_become_one_turn() -> None:
    conversation = read(
        HI,
        {"role": "user", "content": "there"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "refusal", "refusal": "no"}]},
        HI,
    )

    assert conversation.messages == (
        user(Text("hi"), Text("there")),
        assistant(Text("a"), Text("b"), Text("no")),
        user(Text("hi")),
    )


def test_texts_of_white_space_alone_are_left_out() -> None:
    conversation = read(
        {"role": "system", "content": " \n"},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": " hi "}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant"},
        {"role": "user", "content": "\t"},
    )

    assert conversation == Conversation("", (user(Text(" hi ")),))


def test_what_a_client_stores_beside_an_answer_is_not_read() -> None:
    answer: dict[str, Any] = {
        "role": "assistant",
        "content": "a",
        "name": "bot",
        "refusal": None,
        "audio": {"id": "x"},
        "annotations": [],
        "function_call": None,
        "tool_calls": None,
    }

    assert read(HI, answer, HI).messages[1] == assistant(Text("a"))


@pytest.mark.parametrize(
    ("told", "reasoning"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": "hm", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None, "reasoning": {"effort": "high"}}, ""),
        ({"reasoning_content": ["hm"]}, ""),
    ],
)
def test_what_the_model_thought_stands_beside_what_it_said(told: dict[str, Any], reasoning: str) -> None:
    answer = {"role": "assistant", "content": "a", **told}

    assert read(HI, answer, HI).messages[1] == Message("assistant", (Text("a"),), reasoning)


def test_the_thoughts_of_answers_that_become_one_turn_are_joined() -> None:
    answers = [{"role": "assistant", "content": "a", "reasoning_content": text} for text in ("one", "", "two")]

    assert read(HI, *answers, HI).messages[1].reasoning == "one\n\ntwo"


def test_thoughts_without_an_answer_are_no_turn() -> None:
    assert read({"role": "assistant", "content": None, "reasoning_content": "hm"}, HI).messages == (user(Text("hi")),)


def test_a_call_and_its_result_are_two_turns() -> None:
    asked = {"role": "assistant", "content": "Let me look.", "tool_calls": [call("1", "weather", '{"city":"Paris"}')]}

    conversation = read(HI, asked, result("1", "sunny"))

    assert conversation.messages == (
        user(Text("hi")),
        assistant(Text("Let me look."), ToolUse("1", "weather", {"city": "Paris"})),
        user(ToolResult("1", (Text("sunny"),))),
    )


def test_results_come_in_any_order_and_before_what_the_user_says_next() -> None:
    conversation = read(HI, calls("1", "2"), result("2"), {"role": "system", "content": "s"}, result("1"), HI)

    assert conversation.messages[2] == user(ToolResult("2", (Text("ok"),)), ToolResult("1", (Text("ok"),)), Text("hi"))


@pytest.mark.parametrize("content", [None, "", []])
def test_a_result_may_be_empty(content: object) -> None:
    assert read(HI, calls("1"), result("1", content)).messages[-1] == user(ToolResult("1", ()))


def test_a_result_may_hold_an_image() -> None:
    conversation = read(HI, calls("1"), result("1", [{"type": "image_url", "image_url": PIXEL}]))

    assert conversation.messages[-1] == user(ToolResult("1", (Image(media_type="image/png", data="aGk="),)))


def test_the_older_form_of_calls_gets_ids_that_are_the_same_each_time() -> None:
    asked = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}
    answered = {"role": "function", "name": "f", "content": "ok"}

    assert read(HI, asked, answered).messages == (
        user(Text("hi")),
        assistant(ToolUse("function_call_1", "f", {"a": 1})),
        user(ToolResult("function_call_1", (Text("ok"),))),
    )


def test_a_result_without_its_call_is_refused() -> None:
    assert refused_param(HI, result("1")) == "messages[1].tool_call_id"
    assert refused_param(HI, calls("1"), result("2")) == "messages[2].tool_call_id"
    assert refused_param(HI, calls("1"), result("1"), result("1")) == "messages[3].tool_call_id"
    assert refused_param(HI, {"role": "function", "name": "f", "content": "ok"}) == "messages[1].name"


def test_a_call_without_its_result_is_refused() -> None:
    assert refused_param(HI, calls("1"), HI) == "messages[2]"
    assert refused_param(HI, calls("1", "2"), result("1"), calls("3")) == "messages[3]"
    assert refused_param(HI, calls("1", "2"), result("1")) == "messages"


def test_one_id_for_two_calls_is_refused() -> None:
    assert refused_param(HI, calls("1", "1")) == "messages[1].tool_calls[1].id"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "s"}],
        [{"role": "user", "content": " "}],
        [{"role": "user", "content": []}],
        [HI, {"role": "assistant", "content": "once upon"}],
        [HI, {"role": "assistant", "content": "a"}, {"role": "user", "content": "\n"}],
    ],
)
def test_a_conversation_ends_with_something_that_the_user_says(messages: list[dict[str, Any]]) -> None:
    assert refused_param(*messages) == "messages"


@pytest.mark.parametrize("image_url", [PIXEL, {"url": PIXEL}, {"url": PIXEL, "detail": "low"}])
def test_an_image_is_a_part(image_url: object) -> None:
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": image_url}]

    assert read({"role": "user", "content": parts}).messages == (
        user(Text("what?"), Image(media_type="image/png", data="aGk=")),
    )


def test_images_are_counted_over_the_whole_request() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": PIXEL}]}

    read(image, image, limits=ImageLimits(max_count=2))
    with pytest.raises(RequestTooLargeError) as caught:
        read(image, image, image, limits=ImageLimits(max_count=2))

    assert caught.value.param == "messages[2].content[0].image_url"


def test_images_are_weighed_over_the_whole_request() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": PIXEL}]}

    read(image, image, limits=ImageLimits(max_total_bytes=4))
    with pytest.raises(RequestTooLargeError) as caught:
        read(image, image, limits=ImageLimits(max_total_bytes=3))

    assert caught.value.param == "messages[1].content[0].image_url"


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a":[1,{"b":null}]}', {"a": [1, {"b": None}]}),
        ('{"a":"\\ud83d"}', {"a": "\ufffd"}),
        ("", {}),
        (" \n", {}),
        ("[1]", {"_raw": "[1]"}),
        ('{"city":"Par', {"_raw": '{"city":"Par'}),
        ("null", {"_raw": "null"}),
    ],
)
def test_arguments_that_are_no_object_are_kept_as_they_were(text: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(text) == arguments


@pytest.mark.parametrize("levels", [200, 50_000])
def test_arguments_nested_too_deeply_are_kept_as_they_were(levels: int) -> None:
    text = '{"a":' * levels + "1" + "}" * levels

    assert parse_arguments(text) == {"_raw": text}
