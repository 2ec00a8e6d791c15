"""Write a request as the body of ``POST /v1/messages``, as OpenCode Go's models take it."""

from typing import Any, TypeAlias

import msgspec

from ocp_trio.completion import CompletionRequest, Image, Message, Part, Text, ToolResult, ToolUse
from ocp_trio.opencode_go.models import GoModel
from ocp_trio.opencode_go.parameters import max_tokens, offered

__all__ = ["PATH", "VERSION", "encode_request"]

PATH = "/v1/messages"
VERSION = "2023-06-01"
"""Of the API, as its header tells."""

Object: TypeAlias = dict[str, Any]


def encode_request(request: CompletionRequest, model: GoModel) -> bytes:
    """Return the body that asks ``model`` for a stream; what is not asked for is left out, but for the limit.

    This flavour has no place for a form of the answer, for a seed or for penalties.
    """
    body = {
        "model": model.id,
        "messages": [_message(message) for message in request.messages],
        "system": request.system or None,
        "stream": True,
        "max_tokens": max_tokens(request, model),
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "stop_sequences": request.stop or None,
        "thinking": {"type": "adaptive"} if model.adaptive_thinking and request.effort else None,
        **_tools(request),
    }
    return msgspec.json.encode({name: value for name, value in body.items() if value is not None})


def _message(message: Message) -> Object:
    return {"role": message.role, "content": [_block(part) for part in message.parts]}


def _block(part: Part) -> Object:
    match part:
        case ToolUse(call_id, name, arguments):
            return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        case ToolResult(call_id, content, is_error):
            result: Object = {
                "type": "tool_result",
                "tool_use_id": call_id,
                "content": [_block(item) for item in content],
            }
            return {**result, "is_error": True} if is_error else result
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url=url) if url:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case Image(media_type, data):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _tools(request: CompletionRequest) -> Object:
    choice, tools = request.tool_choice, offered(request)
    if not tools:
        return {}
    functions = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
    ]
    kind: Object = {"type": choice.mode}
    if choice.mode == "required":
        kind = {"type": "tool", "name": tools[0].name} if len(tools) == 1 else {"type": "any"}
    if not request.parallel_tool_calls and choice.mode != "none":
        kind["disable_parallel_tool_use"] = True
    return {"tools": functions, **({"tool_choice": kind} if kind != {"type": "auto"} else {})}
