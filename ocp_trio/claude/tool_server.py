"""Be the MCP server that offers the caller's tools to the CLI, over the control protocol of its standard streams.

Nothing is executed here: a call waits until the caller has sent its result (measured on CLI 2.1.332).
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ocp_trio.claude.control_lines import ControlRequest
from ocp_trio.claude.stdin import encode_line
from ocp_trio.claude.tool_names import SERVER, ToolNames
from ocp_trio.completion import Image, Text, Tool, ToolResult

__all__ = ["MAX_RESULT", "ToolServer", "can_answer"]

MAX_RESULT: Final = 300_000
"""Characters of a turn's results, as JSON, up to which the CLI passes them on whole: it puts more into a file."""
_PROTOCOL = "2025-11-25"
_METHOD_NOT_FOUND = -32601


class ToolServer:
    """The tools of one request, and what the model has called of them; without I/O.

    Args:
        tools: On offer.

    Attributes:
        names: The names of the tools.
        waiting: Ids of the calls that wait for their result.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in reversed(list(tools))}
        self.names = ToolNames(self._tools)
        self.waiting: dict[str, ControlRequest] = {}
        self._results: dict[str, ToolResult] = {}

    def take(self, line: ControlRequest) -> bytes:
        """Return the line that answers a request of the CLI; nothing while that waits for a result."""
        if line.request.subtype != "mcp_message":
            return b""
        message = line.request.message
        match message.method:
            case "initialize":
                server = {"name": SERVER, "version": "1"}
                return _reply(line, {"protocolVersion": _PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": server})
            case "tools/list":
                return _reply(line, {"tools": [self._describe(tool) for tool in self._tools.values()]})
            case "tools/call":
                return self._call(line)
            case "ping" | "notifications/initialized" | "notifications/cancelled":
                return _reply(line, {})
            case unknown:
                return _refuse(line, unknown)

    def _call(self, line: ControlRequest) -> bytes:
        call_id = line.request.message.params.call.id
        if call_id not in self._results:
            self.waiting[call_id] = line
            return b""
        return _reply(line, _result(self._results[call_id]))

    def give(self, results: Iterable[ToolResult]) -> bytes:
        """Take the results of calls, and return the lines that answer those which wait."""
        self._results = {result.id: result for result in results}
        answered = [call_id for call_id in self.waiting if call_id in self._results]
        return b"".join([self.take(self.waiting.pop(call_id)) for call_id in answered])

    def _describe(self, tool: Tool) -> dict[str, Any]:
        return {
            "name": self.names.offered(tool.name),
            "description": tool.description,
            "inputSchema": _input_schema(tool.parameters),
            # Calls of tools that change nothing come all at once; others wait for the result of the one before.
            "annotations": {"readOnlyHint": True},
            "_meta": {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 500_000},
        }


def _input_schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a schema as the CLI takes it: with one that it does not take it drops all tools, without a word."""
    return {**parameters, "type": "object"}


def _result(result: ToolResult) -> dict[str, Any]:
    content = [_content(part) for part in result.content]
    return {"content": content, **({"isError": True} if result.is_error else {})}


def _content(part: Text | Image) -> dict[str, Any]:
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(media_type, data):
            return {"type": "image", "data": data, "mimeType": media_type}


def can_answer(results: Iterable[ToolResult]) -> bool:
    """Whether the CLI passes results on as they are: no long ones, no image by its address, or in an error."""
    size = 0
    for result in results:
        images = [part for part in result.content if isinstance(part, Image)]
        if any(image.url for image in images) or (images and result.is_error):
            return False
        size += sum(len(msgspec.json.encode(part.text)) for part in result.content if isinstance(part, Text))
    return size <= MAX_RESULT


def _reply(line: ControlRequest, result: dict[str, Any]) -> bytes:
    return _answer(line, {"result": result})


def _refuse(line: ControlRequest, method: str) -> bytes:
    return _answer(line, {"error": {"code": _METHOD_NOT_FOUND, "message": f"unknown method {method[:64]}"}})


def _answer(line: ControlRequest, outcome: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": line.request.message.id, **outcome}
    response = {"subtype": "success", "request_id": line.request_id, "response": {"mcp_response": message}}
    return encode_line({"type": "control_response", "response": response})
