"""Write a request as the body of ``POST /v1/chat/completions``, as OpenCode Go's models take it."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from ocp_trio.completion import CompletionRequest, Image, JsonFormat, Message, Part, Text, ToolResult, ToolUse
from ocp_trio.opencode_go.models import GoModel
from ocp_trio.opencode_go.parameters import effort, max_tokens, offered

__all__ = ["PATH", "encode_request"]

PATH = "/v1/chat/completions"

Object: TypeAlias = dict[str, Any]


def encode_request(request: CompletionRequest, model: GoModel) -> bytes:
    """Return the body that asks ``model`` for a stream; what is not asked for is left out."""
    messages: list[Object] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        messages += _user(message) if message.role == "user" else [_assistant(message, model)]
    body = {
        "model": model.id,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        # The provider's name for the limit, whatever name the caller used.
        "max_tokens": max_tokens(request, model) if request.max_tokens else None,
        "stop": request.stop or None,
        "reasoning_effort": effort(request.effort, model),
        "response_format": _format(request.response_format),
        **msgspec.structs.asdict(request.sampling),
        **_tools(request),
    }
    return msgspec.json.encode({name: value for name, value in body.items() if value is not None})


def _user(message: Message) -> Iterator[Object]:
    """Write a user's turn: results first, right after the calls that they belong to, then everything else."""
    content = [_part(part) for part in message.parts if isinstance(part, Text | Image)]
    for part in message.parts:
        if isinstance(part, ToolResult):
            text = "\n".join(item.text for item in part.content if isinstance(item, Text))
            yield {"role": "tool", "tool_call_id": part.id, "content": text}
            # A tool's message holds only text; its images are told by the user.
            content += [_part(item) for item in part.content if isinstance(item, Image)]
    if content:
        plain = all(part["type"] == "text" for part in content)
        yield {"role": "user", "content": "\n\n".join(part["text"] for part in content) if plain else content}


def _part(part: Text | Image) -> Object:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(media_type, data, url):
            return {"type": "image_url", "image_url": {"url": url or f"data:{media_type};base64,{data}"}}


def _assistant(message: Message, model: GoModel) -> Object:
    text = "\n\n".join(part.text for part in message.parts if isinstance(part, Text))
    wire: Object = {"role": "assistant", "content": text or None}
    if calls := [_call(part) for part in message.parts if isinstance(part, ToolUse)]:
        wire["tool_calls"] = calls
    if model.reasoning_replay == "always" or (model.reasoning_replay == "known" and message.reasoning):
        wire["reasoning_content"] = message.reasoning
    return wire


def _call(part: Part) -> Object:
    assert isinstance(part, ToolUse)
    arguments = msgspec.json.encode(part.input).decode()
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": arguments}}


def _tools(request: CompletionRequest) -> Object:
    choice, tools = request.tool_choice, offered(request)
    if not tools:
        return {}
    functions = [msgspec.structs.asdict(tool) for tool in tools]
    wire: Object = {"tools": [{"type": "function", "function": function} for function in functions]}
    if choice.mode == "required" and len(tools) == 1:
        wire["tool_choice"] = {"type": "function", "function": {"name": tools[0].name}}
    elif choice.mode != "auto":
        wire["tool_choice"] = choice.mode
    if not request.parallel_tool_calls:
        wire["parallel_tool_calls"] = False
    return wire


def _format(wanted: JsonFormat | None) -> Object | None:
    if wanted is None:
        return None
    if wanted.schema is None:
        return {"type": "json_object"}
    fields = msgspec.structs.asdict(wanted)
    return {"type": "json_schema", "json_schema": {name: value for name, value in fields.items() if value is not None}}
