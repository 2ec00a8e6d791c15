"""Play the steps of a script that make an answer: messages, blocks, tool rounds and results."""

import json
from typing import TYPE_CHECKING, Any

import fake_lines as lines
from fake_steps import Step, Steps

if TYPE_CHECKING:
    from fake_claude import FakeClaude

INPUT_PIECE = 12  # characters of tool input per delta
EMPTY_BLOCKS = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
    "redacted_thinking": {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
}
SIGNATURE = "c2lnbmF0dXJl"


class Turn(Steps):
    """The messages and blocks of one turn."""

    def __init__(self, fake: "FakeClaude") -> None:
        super().__init__(fake)
        self.message_ids: list[str] = []
        self.open_message: str | None = None
        self.block: dict[str, Any] | None = None  # the open one, filled as its deltas come
        self.block_index = -1
        self.unrepeated = 0  # index of the first block without its assistant line
        self.text = ""  # of the last message
        self.any_text = False
        self.tool_input = ""
        self.tool_calls: list[str] = []
        self.tool_results = 0
        self.owes_status = False
        self.thinking_tokens = 0
        self.rounds = 0  # messages that were not cut
        self.stop_reason = "end_turn"  # of the last of them
        self.used = lines.NOTHING  # by all messages, cut ones too

    def answer(self, steps: list[Step]) -> None:
        """Begin as every turn does, unless the script says ``without_init``, then run ``steps``."""
        if steps[0][0] != "without_init":
            self.fake.emit(self.fake.init_line())
            self.do_status("requesting")
        self.run(steps)

    def do_without_init(self) -> None: ...

    # Messages and blocks

    def event(self, event: dict[str, Any], **siblings: object) -> None:
        line = {"type": "stream_event", "event": event, "parent_tool_use_id": None, **siblings}
        self.fake.emit(line | ({"api_message_id": self.open_message} if self.open_message else {}))

    def open(self, kind: str) -> None:
        """Open a message and a block of ``kind`` where none is open."""
        self.do_message_start()
        if self.block is None or self.block["type"] != kind:
            self.do_block_start(kind)

    def do_message_start(self) -> None:
        if self.open_message:
            return
        if self.owes_status:
            self.do_status("requesting")
        self.owes_status = False
        self.fake.messages += 1
        self.open_message = f"msg_fake_{self.fake.messages:04d}"
        self.message_ids.append(self.open_message)
        self.block_index, self.unrepeated, self.text = -1, 0, ""
        self.use((lines.ONE_ROUND[0], 1, *lines.ONE_ROUND[2:]))
        start = lines.message_start(self.open_message, self.fake.model)
        self.event(start, ttft_ms=12, thinking_display="updates")

    def do_block_start(self, kind: str, name: str = "") -> None:
        self.do_message_start()
        self.do_block_end()
        self.block_index += 1
        self.tool_input = ""
        self.block = dict(EMPTY_BLOCKS.get(kind, {}))
        if kind == "tool_use":
            self.tool_calls.append(f"toolu_fake_{self.fake.messages:04d}_{self.block_index}")
            self.block = {"type": "tool_use", "id": self.tool_calls[-1], "name": name, "input": {}}
        display = {"thinking_display": "updates"} if kind == "thinking" else {}
        start = {"type": "content_block_start", "index": self.block_index, "content_block": dict(self.block)}
        self.event(start, **display)

    def delta(self, delta: dict[str, Any], **siblings: object) -> None:
        self.event({"type": "content_block_delta", "index": self.block_index, "delta": delta}, **siblings)

    def do_text(self, *deltas: str) -> None:
        self.open("text")
        assert self.block
        self.any_text = True
        for text in deltas:
            self.block["text"] += text
            self.text += text
            self.delta({"type": "text_delta", "text": text})

    def do_thinking(self, *deltas: str) -> None:
        self.open("thinking")
        assert self.block
        for text in deltas:
            self.block["thinking"] += text
            self.thinking_tokens += 3
            tokens = {"estimated_tokens": self.thinking_tokens, "estimated_tokens_delta": 3}
            self.fake.emit({"type": "system", "subtype": "thinking_tokens", **tokens})
            self.delta({"type": "thinking_delta", "thinking": text}, thinking_display="updates")

    def do_input_json(self, *pieces: str) -> None:
        for piece in pieces:
            self.tool_input += piece
            self.delta({"type": "input_json_delta", "partial_json": piece})

    def do_tool_call(self, name: str, arguments: dict[str, Any]) -> None:
        self.do_block_start("tool_use", name)
        text = json.dumps(arguments)
        self.do_input_json(*(text[i : i + INPUT_PIECE] for i in range(0, len(text), INPUT_PIECE)))
        self.do_block_end()

    def do_client_call(self, name: str, arguments: dict[str, Any]) -> None:
        self.do_tool_call(f"mcp__client__{name}", arguments)
        assert self.fake.client
        self.fake.client.call(self.tool_calls[-1], f"mcp__client__{name}", arguments)

    def do_client_results(self, steps: list[Step]) -> None:
        self.do_message_end("tool_use", 55)
        self.run(steps)
        assert self.fake.client
        self.tool_results += len(self.fake.client.calls)
        self.fake.client.finish()
        self.owes_status = True

    def do_block_end(self, repeat: bool = True) -> None:
        if self.block is None:
            return
        if self.block["type"] == "thinking":
            self.block["signature"] = SIGNATURE
            self.delta({"type": "signature_delta", "signature": SIGNATURE})
        if repeat:
            self.repeat_block()
        self.event({"type": "content_block_stop", "index": self.block_index})
        self.block = None

    def repeat_block(self, **extra: object) -> None:
        """Print the assistant line of the open block."""
        assert self.open_message
        assert self.block
        if self.block["type"] == "tool_use":
            self.block["input"] = json.loads(self.tool_input or "{}")
            extra |= self.fake.client.use_meta(self.block) if self.fake.client else {}
        if self.block["type"] == "thinking":
            extra |= {"thinking_duration_ms": 100, "thinking_display": "updates"}
        self.fake.emit(lines.assistant(self.open_message, self.fake.model, self.block) | extra)
        self.unrepeated = self.block_index + 1

    def do_message_end(self, stop_reason: str = "end_turn", output_tokens: int = 44) -> None:
        if not self.open_message:
            return
        self.do_block_end()
        self.event(lines.message_delta(stop_reason, output_tokens))
        self.event({"type": "message_stop"})
        self.rounds += 1
        self.use((0, output_tokens - 1, 0, 0))
        self.stop_reason = stop_reason
        self.open_message, self.owes_status = None, True

    def do_abandon(self, for_good: bool = False) -> None:
        if self.block is not None:
            self.event({"type": "content_block_stop", "index": self.block_index})
            self.block = None
        if for_good:
            self.event(lines.cut_message_delta())
        cut = {"api_message_id": self.open_message, "from_block_index": self.unrepeated}
        self.event({"type": "message_stop"}, abandoned_blocks=cut)
        self.open_message = None

    def do_whole_message(self, text: str, parent_tool_use_id: str | None = None) -> None:
        self.fake.messages += 1
        message_id = f"msg_fake_{self.fake.messages:04d}"
        line = lines.assistant(message_id, self.fake.model, {"type": "text", "text": text}, "end_turn")
        if parent_tool_use_id is None:
            self.text, self.any_text = text, True
            self.rounds += 1
            self.use(lines.WHOLE_MESSAGE)
        self.fake.emit(line | {"parent_tool_use_id": parent_tool_use_id})

    def do_tool_result(self, content: str, is_error: bool = False, early: bool = False) -> None:
        if not early:
            self.do_message_end("tool_use", 55)
        self.tool_results += 1
        call = self.tool_calls[min(self.tool_results, len(self.tool_calls)) - 1] if self.tool_calls else "toolu_fake"
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": is_error}
        decision = {"decision": "accept", "source": "config", "reason_type": "rule"}
        accepted: dict[str, Any] = {"tool_use_result": {"stdout": content, "stderr": "", "interrupted": False}}
        accepted["tool_use_result"] |= {"isImage": False, "noOutputExpected": False}
        accepted["tool_result_meta"] = [{"id": call, "permission_decision": decision}]
        self.fake.emit(lines.user([block], **({"tool_use_result": content} if is_error else accepted)))
        self.owes_status = True

    def do_burst(self, count: int, text: str, gap: float) -> None:
        self.open("text")
        assert self.block
        self.any_text = True
        self.block["text"] += text * count
        self.text += text * count
        if gap:
            for _ in range(count):
                self.delta({"type": "text_delta", "text": text})
                self.fake.pause(gap)
            return
        inner, self.fake.sink = self.fake.sink, bytearray()
        self.delta({"type": "text_delta", "text": text})
        line, self.fake.sink = bytes(self.fake.sink), inner
        self.repeat_bytes(line, count)

    # Results

    def use(self, tokens: lines.Tokens) -> None:
        given, written, read, cached = self.used
        self.used = (given + tokens[0], written + tokens[1], read + tokens[2], cached + tokens[3])

    def spent(self) -> lines.Tokens:
        """Return what a result without success says was used: nothing, if every message was cut."""
        return self.used if self.rounds else lines.NOTHING

    def result(self, tokens: lines.Tokens, **fields: object) -> None:
        turns = max(self.rounds, self.tool_results + 1)
        base = lines.result(self.fake.model if self.rounds else None, tokens, num_turns=turns)
        self.fake.emit(base | {"begun_message_ids": self.message_ids, "is_error": False, **fields})

    def do_success(self, usage: lines.Tokens | None = None, text: str | None = None) -> None:
        self.do_message_end()
        fields: dict[str, object] = {"ttft_stream_ms": 90, "time_to_request_ms": 80}
        if self.any_text:
            fields |= {"ttft_ms": 290, "first_content_frame_ms": 91}
        outcome = {"stop_reason": self.stop_reason, "terminal_reason": "completed", "api_error_status": None}
        said = self.text if text is None else text
        self.result(usage or self.used, **fields, **outcome, subtype="success", result=said)

    def do_failed_result(self, text: str, status: int | None, terminal_reason: str, extra: dict[str, Any]) -> None:
        outcome = {"subtype": "success", "is_error": True, "result": text, "stop_reason": "stop_sequence"}
        outcome |= {"api_error_status": status, "terminal_reason": terminal_reason, **extra}
        self.result(self.spent(), **outcome)

    def do_error_result(self, subtype: str, terminal_reason: str, message: str) -> None:
        outcome = {"subtype": subtype, "is_error": True, "errors": [message], "terminal_reason": terminal_reason}
        self.result(self.spent(), stop_reason=self.stop_reason, **outcome)

    def interrupted(self) -> None:
        """Print what an interrupt leaves behind: the cut block, a note, the cut message, an error result."""
        if self.block is not None and self.block["type"] == "text":
            self.repeat_block(aborted=True)
        self.fake.emit(lines.user([{"type": "text", "text": "[Request interrupted by user]"}]))
        if self.open_message:
            self.do_abandon(for_good=True)
            self.rounds += 1
        outcome = {"subtype": "error_during_execution", "is_error": True, "errors": ["[interrupted]"]}
        self.result(lines.NOTHING, stop_reason=None, terminal_reason="aborted_streaming", num_turns=2, **outcome)
