"""The tools that a request offers, and whether the model has to use one."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.decoding import check_nesting

__all__ = [
    "FunctionDefinition",
    "FunctionName",
    "Tool",
    "ToolChoice",
    "WireTool",
    "WireToolChoice",
    "read_tool_choice",
    "read_tools",
]


class Tool(msgspec.Struct, frozen=True):
    """A tool on offer; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolChoice(msgspec.Struct, frozen=True):
    """Whether tools may or must be called; ``names`` narrows it to some of them, empty means any."""

    mode: Literal["none", "auto", "required"] = "auto"
    names: tuple[str, ...] = ()


class FunctionName(msgspec.Struct, frozen=True):
    """Names a function."""

    name: Annotated[str, Meta(min_length=1)]


class FunctionDefinition(FunctionName, frozen=True):
    """A function on offer, as it stands in the request."""

    description: str | None = None
    parameters: dict[str, Any] | None = None


class WireTool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """A tool on offer, as it stands in the request."""

    function: FunctionDefinition


class NamedTool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """The one tool that has to be called."""

    function: FunctionName


class AllowedTools(msgspec.Struct, frozen=True):
    """The tools that may or must be called."""

    mode: Literal["auto", "required"]
    tools: tuple[NamedTool, ...]


class AllowedToolsChoice(msgspec.Struct, frozen=True, tag_field="type", tag="allowed_tools"):
    """A choice that narrows the tools on offer."""

    allowed_tools: AllowedTools


WireToolChoice: TypeAlias = Literal["none", "auto", "required"] | NamedTool | AllowedToolsChoice


def read_tools(tools: tuple[WireTool, ...], functions: tuple[FunctionDefinition, ...]) -> tuple[Tool, ...]:
    """Read the tools, and the functions of the form that came before tools.

    Raises:
        InvalidRequestError: a schema is nested too deeply.
    """
    for index, tool in enumerate(tools):
        check_nesting(tool.function.parameters, f"tools[{index}].function.parameters")
    for index, function in enumerate(functions):
        check_nesting(function.parameters, f"functions[{index}].parameters")
    offered = (*(tool.function for tool in tools), *functions)
    return tuple(Tool(each.name, each.description or "", each.parameters or {}) for each in offered)


def read_tool_choice(
    choice: WireToolChoice | None,
    function_call: Literal["none", "auto"] | FunctionName | None,
    *,
    can_force: bool,
) -> ToolChoice:
    """Read ``tool_choice``, or the ``function_call`` that came before it.

    Args:
        choice: The request's ``tool_choice``.
        function_call: The request's ``function_call``; read only without a ``choice``.
        can_force: Whether a call can be enforced.

    Raises:
        InvalidRequestError: a call is enforced that cannot be.
    """
    read, param = _read_choice(choice), "tool_choice"
    if choice is None and function_call is not None:
        read, param = _read_function_call(function_call), "function_call"
    if read.mode == "required" and not can_force:
        raise InvalidRequestError(
            f"{param}: this model cannot be made to call a tool", code="unsupported_parameter", param=param
        )
    return read


def _read_choice(choice: WireToolChoice | None) -> ToolChoice:
    match choice:
        case None:
            return ToolChoice()
        case NamedTool(function):
            return ToolChoice("required", (function.name,))
        case AllowedToolsChoice(allowed):
            return ToolChoice(allowed.mode, tuple(tool.function.name for tool in allowed.tools))
        case mode:
            return ToolChoice(mode)


def _read_function_call(call: Literal["none", "auto"] | FunctionName) -> ToolChoice:
    return ToolChoice("required", (call.name,)) if isinstance(call, FunctionName) else ToolChoice(call)
