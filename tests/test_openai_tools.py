"""Tools on offer are read in both of their forms, and a call is enforced only where it can be."""

from typing import Literal, TypeAlias

import msgspec
import pytest

from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.tools import (
    FunctionDefinition,
    FunctionName,
    Tool,
    ToolChoice,
    WireTool,
    WireToolChoice,
    read_tool_choice,
    read_tools,
)

FunctionCall: TypeAlias = Literal["none", "auto"] | FunctionName

choices: msgspec.json.Decoder[WireToolChoice] = msgspec.json.Decoder(WireToolChoice)
function_calls: msgspec.json.Decoder[FunctionCall] = msgspec.json.Decoder(FunctionCall)

NAMED = '{"type":"function","function":{"name":"f"}}'
FORCED = [
    ('"required"', ToolChoice("required")),
    (NAMED, ToolChoice("required", ("f",))),
    (
        '{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[' + NAMED + "]}}",
        ToolChoice("required", ("f",)),
    ),
]


def test_a_tool_without_description_or_parameters_is_a_tool() -> None:
    bare = WireTool(FunctionDefinition("f"))
    function = FunctionDefinition("g", description="does g", parameters={"type": "object"})

    assert read_tools((bare,), (function,)) == (Tool("f", "", {}), Tool("g", "does g", {"type": "object"}))


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, object] = {}
    for _ in range(200):
        schema = {"items": schema}
    function = FunctionDefinition("f", parameters=schema)

    for tools, functions in (((WireTool(function),), ()), ((), (function,))):
        with pytest.raises(InvalidRequestError, match="nested"):
            read_tools(tools, functions)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ('"auto"', ToolChoice("auto")),
        ('"none"', ToolChoice("none")),
        (
            '{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[' + NAMED + "]}}",
            ToolChoice("auto", ("f",)),
        ),
    ],
)
def test_a_choice_that_is_left_to_the_model_is_read(choice: str, expected: ToolChoice) -> None:
    assert read_tool_choice(choices.decode(choice), None, can_force=False) == expected


def test_no_choice_leaves_it_to_the_model() -> None:
    assert read_tool_choice(None, None, can_force=False) == ToolChoice("auto")


@pytest.mark.parametrize(("choice", "expected"), FORCED)
def test_a_forced_call_is_read_where_it_can_be_enforced(choice: str, expected: ToolChoice) -> None:
    assert read_tool_choice(choices.decode(choice), None, can_force=True) == expected


@pytest.mark.parametrize("choice", [row[0] for row in FORCED])
def test_a_forced_call_is_refused_where_it_cannot_be_enforced(choice: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_tool_choice(choices.decode(choice), None, can_force=False)

    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "tool_choice")


def test_a_function_call_is_a_choice_in_its_older_form() -> None:
    named = function_calls.decode('{"name":"f"}')

    assert read_tool_choice(None, "none", can_force=False) == ToolChoice("none")
    assert read_tool_choice(None, named, can_force=True) == ToolChoice("required", ("f",))
    assert read_tool_choice("auto", named, can_force=False) == ToolChoice("auto")
    with pytest.raises(InvalidRequestError) as caught:
        read_tool_choice(None, named, can_force=False)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "function_call")
