"""What is written to a child: the control protocol of ``--input-format stream-json``, and the conversation.

Roles are the protocol's own fields, so text that looks like a role marker stays text; ``client_composed`` keeps
``@/path`` and ``/command`` text as well (measured on CLI 2.1.332).
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ocp_trio.claude.tool_names import SERVER, ToolNames, safe_id
from ocp_trio.completion import CompletionRequest, Image, Message, Part, Text, ToolResult, ToolUse
from ocp_trio.surrogates import scrub

__all__ = ["Step", "conversation", "encode_line"]

LEAST_BUDGET = 1024
"""Tokens that the CLI gives some models to think at least, however few the answer may have: the API refuses that."""


class Step(NamedTuple):
    """Lines to write at once; ``acks`` is how many empty results must have come before."""

    data: bytes
    acks: int


def encode_line(value: dict[str, Any]) -> bytes:
    """Return a line of input."""
    try:
        return msgspec.json.encode(value) + b"\n"
    except UnicodeEncodeError:
        return scrub(json.dumps(value, ensure_ascii=False)).encode() + b"\n"


def _control(request_id: str, request: dict[str, Any]) -> bytes:
    return encode_line({"type": "control_request", "request_id": request_id, "request": request})


def _set_up(request: CompletionRequest) -> bytes:
    """Initialize with the system prompt, then set model, effort and token limit."""
    initialize: dict[str, Any] = {"subtype": "initialize"}
    if request.system:
        initialize["systemPrompt"] = [request.system]
    if request.tools:
        # The CLI asks this server for its tools over these very streams: see `tool_server`.
        initialize["sdkMcpServers"] = [SERVER]
    settings: dict[str, Any] = {"model": request.model}
    if request.effort is not None:
        settings["effortLevel"] = request.effort
    if request.max_tokens is not None:
        settings["env"] = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(request.max_tokens)}
        if request.max_tokens <= LEAST_BUDGET:
            settings["env"]["CLAUDE_CODE_DISABLE_THINKING"] = "1"
    return _control("initialize", initialize) + _control(
        "settings", {"subtype": "apply_flag_settings", "settings": settings}
    )


def _content(part: Text | Image) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(url=url) if url:
            return {"type": "image", "source": {"type": "url", "url": url}}
        case Image(media_type, data):
            return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _block(part: Part, names: ToolNames) -> dict[str, Any]:
    match part:
        case ToolUse(call_id, name, arguments):
            # Under its present name: the model is to take it for a call of the tool on offer.
            return {"type": "tool_use", "id": safe_id(call_id), "name": names.shown(name), "input": arguments}
        case ToolResult(call_id, content, is_error):
            inner = [_content(item) for item in content]
            return {"type": "tool_result", "tool_use_id": safe_id(call_id), "content": inner, "is_error": is_error}
        case _:
            return _content(part)


def _message(message: Message, names: ToolNames, **fields: bool) -> bytes:
    content = [_block(part, names) for part in message.parts]
    return encode_line({"type": message.role, "message": {"role": message.role, "content": content}, **fields})


def conversation(request: CompletionRequest, known: int = 0) -> Iterator[Step]:
    """Yield what to write for a request, in order; ``known`` messages of it are held by the child already.

    The order of history holds only if a user's message of the past has been accepted (by an empty result) before the
    assistant's next one is written.
    """
    acks = 0
    names = ToolNames(tool.name for tool in request.tools)
    pending = b"" if known else _set_up(request)
    for message in request.messages[known:-1]:
        if message.role == "user":
            yield Step(pending + _message(message, names, shouldQuery=False, client_composed=True), acks)
            acks, pending = acks + 1, b""
        else:
            pending += _message(message, names)
    yield Step(pending + _message(request.messages[-1], names, client_composed=True), acks)
