"""A parameter of the wrong type or value is refused by name."""

from typing import Any

import pytest
from openai_bodies import HONOURED, IGNORED, MESSAGES, NAMED, parse

from ocp_trio.errors import InvalidRequestError


def refusal(**fields: object) -> tuple[str, str | None]:
    with pytest.raises(InvalidRequestError) as caught:
        parse(**fields)
    return caught.value.code, caught.value.param


@pytest.mark.parametrize("name", [*IGNORED, *HONOURED])
def test_any_parameter_may_be_null(name: str) -> None:
    assert parse(**{name: None}) == parse()


@pytest.mark.parametrize("name", [name for name in [*IGNORED, *HONOURED] if name != "unknown_x"])
def test_a_parameter_of_the_wrong_type_is_refused_by_name(name: str) -> None:
    code, param = refusal(**{name: [[5]]})

    assert code == "invalid_type"
    assert param in {name, f"{name}[0]"}


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"model": 5}, "invalid_type", "model"),
        ({"model": None}, "invalid_type", "model"),
        ({"model": ""}, "unsupported_value", "model"),
        ({"messages": {"role": "user"}}, "invalid_type", "messages"),
        ({"messages": None}, "invalid_type", "messages"),
        ({"messages": []}, "unsupported_value", "messages"),
        ({"messages": [None]}, "invalid_type", "messages[0]"),
        ({"messages": ["x"]}, "invalid_type", "messages[0]"),
        ({"messages": [[]]}, "invalid_type", "messages[0]"),
        ({"messages": [{}]}, "missing_required_parameter", "messages[0].role"),
        ({"messages": [{"role": 5, "content": "x"}]}, "invalid_type", "messages[0].role"),
        ({"messages": [{"role": "x", "content": "x"}]}, "unsupported_value", "messages[0].role"),
        ({"messages": [*MESSAGES, {"role": "user"}]}, "missing_required_parameter", "messages[1].content"),
        ({"messages": [{"role": "user", "content": None}]}, "invalid_type", "messages[0].content"),
        ({"messages": [{"role": "user", "content": {}}]}, "invalid_type", "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, "invalid_type", "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "missing_required_parameter",
         "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "unsupported_value",
         "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "file"}]}]}, "unsupported_value",
         "messages[0].content[0].type"),
        ({"messages": [*MESSAGES, {"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "missing_required_parameter",
         "messages[1].tool_calls[0].function"),
        ({"n": 0}, "unsupported_value", "n"),
        ({"n": 2}, "unsupported_value", "n"),
        ({"n": 1.5}, "invalid_type", "n"),
        ({"n": True}, "invalid_type", "n"),
        ({"stop": ""}, "unsupported_value", "stop"),
        ({"stop": []}, "unsupported_value", "stop"),
        ({"stop": ["a", ""]}, "unsupported_value", "stop[1]"),
        ({"stop": ["a"] * 5}, "unsupported_value", "stop"),
        ({"stop": "a" * 1001}, "unsupported_value", "stop"),
        ({"stream": "true"}, "invalid_type", "stream"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "invalid_type", "stream_options.include_usage"),
        ({"max_tokens": 0}, "unsupported_value", "max_tokens"),
        ({"max_completion_tokens": 2**40}, "unsupported_value", "max_completion_tokens"),
        ({"seed": 2**70}, "unsupported_value", "seed"),
        ({"reasoning_effort": "huge"}, "unsupported_value", "reasoning_effort"),
        ({"response_format": {"type": "xml"}}, "unsupported_value", "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "missing_required_parameter", "response_format.json_schema"),
        ({"tools": [{"type": "web_search"}]}, "unsupported_value", "tools[0].type"),
        ({"tools": [{"type": "function", "function": {}}]}, "missing_required_parameter", "tools[0].function.name"),
        ({"tool_choice": "any"}, "unsupported_value", "tool_choice"),
        ({"tool_choice": "required"}, "unsupported_parameter", "tool_choice"),
        ({"tool_choice": NAMED}, "unsupported_parameter", "tool_choice"),
        ({"function_call": {"name": "f"}}, "unsupported_parameter", "function_call"),
        ({"session_id": "s" * 300}, "unsupported_value", "session_id"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(fields: dict[str, Any], code: str, param: str) -> None:
    assert refusal(**fields) == (code, param)
