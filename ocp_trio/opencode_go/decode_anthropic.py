"""Read a stream of Anthropic's Messages API (version 2023-06-01), as OpenCode Go and the servers behind it write it."""

from typing import Any, ClassVar

import msgspec

from ocp_trio.completion import FinishReason, Usage
from ocp_trio.opencode_go.answer import Answer, Wire

__all__ = ["AnthropicAnswer"]

_FINISH_REASONS: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str | None = None
    thinking: str | None = None
    input: dict[str, Any] | None = None


class _Delta(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct, frozen=True):
    usage: _Usage | None = None


class _Event(Wire, frozen=True):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None


_decoder = msgspec.json.Decoder(_Event)


class AnthropicAnswer(Answer[_Event]):
    """An answer told in content blocks."""

    keepalive: ClassVar[str | None] = "ping"

    def __init__(self) -> None:
        super().__init__(_decoder)
        self._call_of_block: dict[int, int] = {}

    def _read(self, wire: _Event) -> str:
        match wire.type:
            case "message_start" if wire.message is not None:
                self._count(wire.message.usage)
            case "content_block_start" if wire.content_block is not None:
                self._begin(wire.index, wire.content_block)
            case "content_block_delta" if wire.delta is not None:
                self._extend(wire.index, wire.delta)
            case "content_block_stop":
                self._leave()
            case "message_delta":
                self._count(wire.usage)
                if wire.delta is not None and wire.delta.stop_reason:
                    self._finish(_FINISH_REASONS.get(wire.delta.stop_reason, "stop"))
            case "message_stop":
                self._end()
        return wire.type

    def _begin(self, index: int, block: _Block) -> None:
        if block.type == "tool_use":
            call = self._call_of_block[index] = self._begin_call(block.id, block.name)
            if block.input:
                self._argue(call, msgspec.json.encode(block.input).decode())
            return
        self._think(block.thinking or "")
        self._say(block.text or "")

    def _extend(self, index: int, delta: _Delta) -> None:
        self._think(delta.thinking or "")
        self._say(delta.text or "")
        if delta.partial_json and index in self._call_of_block:
            self._argue(self._call_of_block[index], delta.partial_json)

    def _count(self, new: _Usage | None) -> None:
        """Take counts; those of a later event are nearer the truth, but for zeros."""
        if new is not None:
            old = self.usage
            self.usage = Usage(
                input=new.input_tokens or old.input,
                output=new.output_tokens or old.output,
                cache_read=new.cache_read_input_tokens or old.cache_read,
                cache_write=new.cache_creation_input_tokens or old.cache_write,
            )
