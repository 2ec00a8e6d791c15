"""A request is written as each flavour of OpenCode Go wants it, and nothing is sent that was not asked for."""

import json
from typing import Any

import pytest

from ocp_trio.completion import (
    CompletionRequest,
    Image,
    JsonFormat,
    Message,
    Sampling,
    Text,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from ocp_trio.opencode_go import requests_anthropic, requests_openai
from ocp_trio.opencode_go.models import MODELS, find

HI = (Message("user", (Text("hi"),)),)
LOOK = Tool("look", "Look at it.", {"type": "object", "properties": {"x": {"type": "integer"}}})
WAIT = Tool("wait", "", {})
PNG = Image("image/png", "aGk=")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

TOOL_ROUND = (
    Message("user", (Text("what is it?"), PNG)),
    Message("assistant", (Text("I look."), ToolUse("c1", "look", {"x": 1}), ToolUse("c2", "wait", {})), "It is small."),
    Message("user", (ToolResult("c1", (Text("a"), Text("b"), PNG)), ToolResult("c2", (), is_error=True), Text("so?"))),
    Message("assistant", (ToolUse("c3", "wait", {}),)),
    Message("user", (ToolResult("c3", (Text("done"),)),)),
)


def openai(model: str = "glm-5.2", **fields: Any) -> dict[str, Any]:
    return _written(requests_openai, model, fields)


def anthropic(model: str = "qwen3.7-max", **fields: Any) -> dict[str, Any]:
    return _written(requests_anthropic, model, fields)


def _written(flavour: Any, model: str, fields: dict[str, Any]) -> dict[str, Any]:
    known = find(model)
    assert known
    request = CompletionRequest(**{"model": f"opencode-go/{model}", "messages": HI, **fields})
    body: dict[str, Any] = json.loads(flavour.encode_request(request, known))
    return body


def test_a_plain_question_is_written_in_openais_words() -> None:
    assert openai() == {
        "model": "glm-5.2",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_plain_question_is_written_in_anthropics_words_with_the_longest_answer_as_its_limit() -> None:
    assert anthropic() == {
        "model": "qwen3.7-max",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
        "max_tokens": 65_536,
    }


def test_the_system_text_stands_where_each_flavour_has_it() -> None:
    assert openai(system="Be brief.")["messages"][0] == {"role": "system", "content": "Be brief."}
    assert anthropic(system="Be brief.")["system"] == "Be brief."


def test_a_conversation_with_calls_results_and_images_is_written_in_openais_words() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}

    assert openai(messages=TOOL_ROUND)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "what is it?"}, image]},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "It is small.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}},
                {"id": "c2", "type": "function", "function": {"name": "wait", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "so?"}, image]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c3", "type": "function", "function": {"name": "wait", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c3", "content": "done"},
    ]


def test_the_same_is_written_in_anthropics_words() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}

    assert anthropic(messages=TOOL_ROUND)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "what is it?"}, image]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"x": 1}},
                {"type": "tool_use", "id": "c2", "name": "wait", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, image],
                },
                {"type": "tool_result", "tool_use_id": "c2", "content": [], "is_error": True},
                {"type": "text", "text": "so?"},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "wait", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c3", "content": [{"type": "text", "text": "done"}]},
            ],
        },
    ]


def test_several_texts_of_a_turn_stay_apart() -> None:
    messages = (Message("user", (Text("a"), Text("b"))),)

    assert openai(messages=messages)["messages"] == [{"role": "user", "content": "a\n\nb"}]


def test_an_image_may_be_told_by_its_address() -> None:
    messages = (Message("user", (Image(url="https://example.org/a.png"),)),)

    [part] = openai(messages=messages)["messages"][0]["content"]
    [block] = anthropic(messages=messages)["messages"][0]["content"]

    assert part == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert block == {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


@pytest.mark.parametrize("model", [model.id for model in MODELS if model.id.startswith("kimi")])
def test_kimi_gets_no_reasoning_back(model: str) -> None:
    written = openai(model, messages=TOOL_ROUND)["messages"]

    assert not any("reasoning_content" in message for message in written)


def test_deepseek_gets_it_with_every_turn_even_if_there_is_none() -> None:
    written = openai("deepseek-v4-pro", messages=TOOL_ROUND)["messages"]

    thoughts = [message["reasoning_content"] for message in written if message["role"] == "assistant"]
    assert thoughts == ["It is small.", ""]


EFFORTS = {
    "deepseek-v4-pro": ["high", "high", "high", "max", "max"],
    "deepseek-v4-flash": ["high", "high", "high", "max", "max"],
    "glm-5.2": ["high", "high", "high", "max", "max"],
    "kimi-k3": ["low", "high", "high", "max", "max"],
    "grok-4.5": ["low", "medium", "high", "high", "high"],
    "kimi-k2.6": [None] * 5,
    "glm-5": [None] * 5,
}


@pytest.mark.parametrize("model", EFFORTS)
def test_an_effort_becomes_the_nearest_that_the_model_takes(model: str) -> None:
    wanted = ("low", "medium", "high", "xhigh", "max")

    assert [openai(model, effort=effort).get("reasoning_effort") for effort in wanted] == EFFORTS[model]


@pytest.mark.parametrize("effort", [None, "whatever"])
def test_no_effort_and_an_unknown_one_are_left_to_the_model(effort: str | None) -> None:
    assert "reasoning_effort" not in openai("deepseek-v4-pro", effort=effort)


def test_an_effort_makes_minimax_m3_think_and_changes_nothing_for_its_neighbours() -> None:
    assert anthropic("minimax-m3", effort="low")["thinking"] == {"type": "adaptive"}
    assert "thinking" not in anthropic("minimax-m3")
    assert "thinking" not in anthropic("minimax-m2.7", effort="max")
    assert "thinking" not in anthropic("qwen3.7-max", effort="max")


@pytest.mark.parametrize("write", [openai, anthropic])
def test_a_limit_goes_by_the_providers_name_and_is_never_above_the_models(write: Any) -> None:
    assert write(max_tokens=100)["max_tokens"] == 100
    assert write(max_tokens=10**9)["max_tokens"] in {131_072, 65_536}


def test_sampling_stops_and_formats_are_passed_on_in_openais_words() -> None:
    sampling = Sampling(temperature=0.0, top_p=0.5, seed=7, presence_penalty=0.1, frequency_penalty=-0.1)
    wanted = JsonFormat(schema=SCHEMA, name="thing", strict=True)

    body = openai(sampling=sampling, stop=("END", "\n"), response_format=wanted)

    assert {name: body[name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": 0,
        "top_p": 0.5,
        "seed": 7,
    }
    assert (body["presence_penalty"], body["frequency_penalty"], body["stop"]) == (0.1, -0.1, ["END", "\n"])
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "thing", "schema": SCHEMA, "strict": True},
    }
    assert openai(response_format=JsonFormat())["response_format"] == {"type": "json_object"}


def test_those_that_anthropics_flavour_has_are_passed_on_in_its_words() -> None:
    sampling = Sampling(temperature=0.2, top_p=0.5, seed=7, presence_penalty=0.1)

    body = anthropic(sampling=sampling, stop=("END",), response_format=JsonFormat())

    assert set(body) == {
        "model", "messages", "stream", "max_tokens", "temperature", "top_p", "stop_sequences"
    }  # fmt: skip
    assert (body["temperature"], body["top_p"], body["stop_sequences"]) == (0.2, 0.5, ["END"])


def test_tools_are_offered_in_both_flavours() -> None:
    nothing = {"type": "object", "properties": {}}

    assert openai(tools=(LOOK, WAIT))["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "Look at it.", "parameters": LOOK.parameters},
        },
        {"type": "function", "function": {"name": "wait", "description": "", "parameters": nothing}},
    ]
    assert anthropic(tools=(LOOK, WAIT))["tools"] == [
        {"name": "look", "description": "Look at it.", "input_schema": LOOK.parameters},
        {"name": "wait", "description": "", "input_schema": nothing},
    ]


CHOICES = [
    (ToolChoice(), None, None),
    (ToolChoice("none"), "none", {"type": "none"}),
    (ToolChoice("required"), "required", {"type": "any"}),
]


@pytest.mark.parametrize(("choice", "told", "told_anthropic"), CHOICES)
def test_a_choice_is_told_in_both_flavours(choice: ToolChoice, told: Any, told_anthropic: Any) -> None:
    tools = (LOOK, WAIT)

    assert openai(tools=tools, tool_choice=choice).get("tool_choice") == told
    assert anthropic(tools=tools, tool_choice=choice).get("tool_choice") == told_anthropic


def test_a_choice_by_name_narrows_what_is_offered() -> None:
    fields: dict[str, Any] = {"tools": (LOOK, WAIT), "tool_choice": ToolChoice("required", ("wait",))}

    assert [tool["function"]["name"] for tool in openai(**fields)["tools"]] == ["wait"]
    assert openai(**fields)["tool_choice"] == {"type": "function", "function": {"name": "wait"}}
    assert [tool["name"] for tool in anthropic(**fields)["tools"]] == ["wait"]
    assert anthropic(**fields)["tool_choice"] == {"type": "tool", "name": "wait"}


def test_one_call_at_a_time_can_be_asked_for() -> None:
    fields: dict[str, Any] = {"tools": (LOOK,), "parallel_tool_calls": False}

    assert openai(**fields)["parallel_tool_calls"] is False
    assert anthropic(**fields)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@pytest.mark.parametrize("write", [openai, anthropic])
def test_without_tools_nothing_is_said_of_them(write: Any) -> None:
    body = write(tool_choice=ToolChoice("required"), parallel_tool_calls=False)

    assert not body.keys() & {"tools", "tool_choice", "parallel_tool_calls"}
