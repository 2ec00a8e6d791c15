"""The server of the caller's tools lists them, lets calls wait, and answers them with their results."""

import json
from typing import Any

import pytest
from claude_lines import encoded

from ocp_trio.claude.control_lines import ControlRequest
from ocp_trio.claude.held import HeldTurn
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.claude.tool_server import MAX_RESULT, ToolServer, can_answer
from ocp_trio.completion import Image, Text, Tool, ToolResult

LOOK = Tool("look", "Look.", {"properties": {"at": {"type": "string"}}})
RED = Image("image/png", "AAAA")


def control(method: str, call_id: str = "c1", **message: Any) -> dict[str, Any]:
    params = {"name": "look", "arguments": {}, "_meta": {"claudecode/toolUseId": call_id, "progressToken": 1}}
    rpc = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **message}
    request = {"subtype": "mcp_message", "server_name": "client", "message": rpc}
    return {"type": "control_request", "request_id": f"r-{call_id}", "request": request}


def line(method: str, call_id: str = "c1", **message: Any) -> ControlRequest:
    [decoded] = StreamJsonDecoder().feed(encoded(control(method, call_id, **message)))
    assert isinstance(decoded, ControlRequest)
    return decoded


def answers(written: bytes) -> list[Any]:
    """Return for each line the request that it answers, and the JSON-RPC message."""
    responses = [json.loads(text)["response"] for text in written.splitlines()]
    return [(each["request_id"], each["response"]["mcp_response"]) for each in responses]


def test_it_introduces_itself() -> None:
    [(request_id, message)] = answers(ToolServer([LOOK]).take(line("initialize")))

    assert (request_id, message["id"]) == ("r-c1", 7)
    assert message["result"]["capabilities"] == {"tools": {}}


def test_it_lists_each_tool_once_with_a_schema_of_an_object() -> None:
    [(_, message)] = answers(ToolServer([LOOK, Tool("look", "Again.", {})]).take(line("tools/list")))

    [tool] = message["result"]["tools"]
    assert (tool["name"], tool["description"]) == ("look", "Look.")
    assert tool["inputSchema"] == {"properties": {"at": {"type": "string"}}, "type": "object"}


def test_a_notification_is_answered_without_an_id() -> None:
    [(_, message)] = answers(ToolServer([]).take(line("notifications/initialized", id=None)))

    assert (message["id"], message["result"]) == (None, {})


def test_an_unknown_method_is_refused() -> None:
    [(_, message)] = answers(ToolServer([]).take(line("resources/list")))

    assert message["error"]["code"] == -32601


def test_a_call_waits_for_its_result() -> None:
    server = ToolServer([LOOK])
    assert server.take(line("tools/call", "c1")) == b""
    assert list(server.waiting) == ["c1"]

    [(request_id, message)] = answers(server.give([ToolResult("c1", (Text("a cat"), RED))]))

    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert (request_id, message["result"]) == ("r-c1", {"content": [{"type": "text", "text": "a cat"}, image]})
    assert not server.waiting


def test_a_call_that_comes_after_its_result_is_answered_at_once() -> None:
    server = ToolServer([LOOK])
    server.give([ToolResult("c2", (Text("no"),), is_error=True)])

    [(request_id, message)] = answers(server.take(line("tools/call", "c2")))

    assert (request_id, message["result"]) == ("r-c2", {"content": [{"type": "text", "text": "no"}], "isError": True})


@pytest.mark.parametrize(
    ("results", "can"),
    [
        ([ToolResult("c", (Text("a"), RED))], True),
        ([ToolResult("c", ())], True),
        ([ToolResult("c", (Text("x" * (MAX_RESULT - 2)),))], True),
        ([ToolResult("c", (Text("x" * MAX_RESULT),))], False),
        ([ToolResult(str(i), (Text("x" * (MAX_RESULT // 2)),)) for i in range(2)], False),
        ([ToolResult("c", (Image(url="https://example.org/a.png"),))], False),
        ([ToolResult("c", (RED,), is_error=True)], False),
    ],
)
def test_what_the_cli_would_change_cannot_be_an_answer(results: list[ToolResult], can: bool) -> None:
    assert can_answer(results) is can


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ({"type": "tool_progress", "heartbeat": True}, True),
        ({"type": "control_response", "response": {}}, True),
        (control("tools/call", "c2"), True),
        (control("tools/list"), False),
        ({"type": "user", "message": {"content": []}}, False),
        ({"type": "assistant", "message": {}}, False),
        ({"type": "result"}, False),
    ],
)
def test_a_held_turn_waits_as_long_as_nothing_goes_on(said: dict[str, Any], waits: bool) -> None:
    assert HeldTurn(StreamJsonDecoder(), ToolServer([LOOK])).hear(encoded(said)) is waits


def test_a_held_turn_ends_with_a_line_that_is_too_long() -> None:
    assert not HeldTurn(StreamJsonDecoder(10), ToolServer([])).hear(b"x" * 11)
