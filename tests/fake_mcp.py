"""Play the CLI's side of the caller's tools: it asks the server behind its streams for them, and calls them."""

from typing import TYPE_CHECKING, Any

import fake_lines as lines

if TYPE_CHECKING:
    from fake_claude import FakeClaude

PREFIX = "mcp__client__"
CLIENT = {
    "name": "claude-code",
    "title": "Claude Code",
    "description": "",
    "websiteUrl": "",
    "version": lines.VERSION,
}


class ToolClient:
    """A client of one server: what it has asked, and what it was answered."""

    def __init__(self, fake: "FakeClaude") -> None:
        self.fake = fake
        self.tools: list[dict[str, Any]] | None = None
        self.calls: dict[str, dict[str, Any]] = {}  # by the model's id: those whose results the model has not got
        self._asked: dict[str, str] = {}
        self._sent: dict[str, str] = {}
        self._answers: dict[str, Any] = {}
        self._next = 0
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT})

    def init_fields(self) -> dict[str, object]:
        """Return what an init line says of the server."""
        names = [PREFIX + tool["name"] for tool in self.tools or []]
        return {"tools": names, "mcp_servers": [{"name": "client", "status": "connected", "source": "sdk"}]}

    def use_meta(self, block: dict[str, Any]) -> dict[str, object]:
        """Return what the assistant line of a call says beside it."""
        name = block["name"].removeprefix(PREFIX)
        shown = {"tool_name": name, "display_name": name, "server_display_name": "client"}
        return {"tool_use_meta": [{"id": block["id"], **shown}]} if name != block["name"] else {}

    def take(self, response: dict[str, Any]) -> None:
        """Take an answer of the server's."""
        request_id = response["request_id"]
        result = response["response"]["mcp_response"].get("result")
        match self._asked.pop(request_id):
            case "initialize":
                self._ask("notifications/initialized", None)
                self._ask("tools/list", None)
            case "tools/list":
                self.tools = result["tools"]
            case "tools/call":
                self._answers[request_id] = result

    def call(self, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        """Take a call of the model's; one that changes nothing need not wait for the others."""
        self.calls[call_id] = {"name": name.removeprefix(PREFIX), "arguments": arguments}
        [tool] = [tool for tool in self.tools or [] if PREFIX + tool["name"] == name]
        if len(self.calls) == 1 or tool.get("annotations", {}).get("readOnlyHint"):
            self._send(call_id)

    def finish(self) -> None:
        """Wait for the results of all calls, and print them in order."""
        for call_id in list(self.calls):
            if call_id not in self._sent:
                self._send(call_id)
            while self._sent[call_id] not in self._answers:
                self.fake.wait()
            self._print(call_id, self._answers[self._sent[call_id]])
            del self.calls[call_id]

    def _print(self, call_id: str, result: dict[str, Any]) -> None:
        content: list[dict[str, Any]] = [
            {"type": "image", "source": {"type": "base64", "media_type": part["mimeType"], "data": part["data"]}}
            if part["type"] == "image"
            else part
            for part in result["content"]
        ]
        if result.get("isError"):
            text = "\n".join(part["text"] for part in content if part["type"] == "text")
            block = {"type": "tool_result", "content": text, "is_error": True, "tool_use_id": call_id}
            self.fake.emit(lines.user([block], tool_use_result=f"Error: {text}"))
            return
        decision = {"decision": "accept", "source": "config", "reason_type": "rule"}
        block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        meta = [{"id": call_id, "permission_decision": decision}]
        self.fake.emit(lines.user([block], tool_use_result=content, tool_result_meta=meta))

    def _send(self, call_id: str) -> None:
        meta = {"claudecode/toolUseId": call_id, "progressToken": self._next}
        self._sent[call_id] = self._ask("tools/call", {**self.calls[call_id], "_meta": meta})

    def _ask(self, method: str, params: dict[str, Any] | None) -> str:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        message |= {"params": params} if params is not None else {}
        if not method.startswith("notifications/"):
            message["id"] = self._next
            self._next += 1
        request_id = f"mcp-{len(self._asked)}-{self._next}-{method}"
        self._asked[request_id] = method
        request = {"subtype": "mcp_message", "server_name": "client", "message": message}
        self.fake.emit({"type": "control_request", "request_id": request_id, "request": request})
        return request_id
