"""The tools that a request offers, and whether the model has to use one."""

from typing import Annotated, Any, Literal, TypeAlias

import jsonschema_rs
import msgspec
from msgspec import Meta

from ocp_trio.completion import Tool, ToolChoice
from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.decoding import check_nesting

__all__ = [
    "FunctionDefinition",
    "FunctionName",
    "Tool",
    "ToolChoice",
    "WireTool",
    "WireToolChoice",
    "check_tool_choice",
    "read_tool_choice",
    "read_tools",
]


_DRAFTS = tuple(
    f"{base}/schema{end}"
    for base, end in (
        ("https://json-schema.org/draft/2020-12", ""),
        ("https://json-schema.org/draft/2019-09", ""),
        ("http://json-schema.org/draft-07", "#"),
        ("http://json-schema.org/draft-06", "#"),
        ("http://json-schema.org/draft-04", "#"),
    )
)


class FunctionName(msgspec.Struct, frozen=True):
    """Names a function."""

    name: Annotated[str, Meta(min_length=1)]


class FunctionDefinition(FunctionName, frozen=True):
    """A function on offer, as it stands in the request."""

    description: str | None = None
    parameters: dict[str, Any] | None = None


class WireTool(msgspec.Struct, frozen=True):
    """A tool on offer, as it stands in the request."""

    function: FunctionDefinition
    type: Literal["function"] = "function"


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
        InvalidRequestError: what should be a schema is none, or does not describe an object.
    """
    for index, tool in enumerate(tools):
        _check_schema(tool.function.parameters, f"tools[{index}].function.parameters")
    for index, function in enumerate(functions):
        _check_schema(function.parameters, f"functions[{index}].parameters")
    offered = (*(tool.function for tool in tools), *functions)
    return tuple(Tool(each.name, each.description or "", each.parameters or {}) for each in offered)


def _check_schema(parameters: dict[str, Any] | None, param: str) -> None:
    check_nesting(parameters, param)
    schema = parameters or {}
    if schema.get("type", "object") != "object":
        raise InvalidRequestError(f"{param}: its type has to be object", code="unsupported_value", param=param)
    # Each draft by its own name: the schema's might make the library fetch a page.
    if not any(jsonschema_rs.meta.is_valid({**schema, "$schema": draft}) for draft in _DRAFTS):
        raise InvalidRequestError(f"{param}: it is no JSON Schema", code="unsupported_value", param=param)


def check_tool_choice(choice: ToolChoice, tools: tuple[Tool, ...]) -> None:
    """Refuse a choice of tools that are not on offer.

    Raises:
        InvalidRequestError: a call has to be made, and there is no tool to call, or a named one does not exist.
    """
    offered = {tool.name for tool in tools}
    missing = next((name for name in choice.names if name not in offered), None)
    if missing is not None or (choice.mode == "required" and not tools):
        problem = f"the tool {missing[:64]!r} is not among the tools" if missing else "there are no tools"
        raise InvalidRequestError(f"tool_choice: {problem}", code="unsupported_value", param="tool_choice")


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
