"""Read a stream of OpenAI's chat completion chunks, as OpenCode Go and the servers behind it write them."""

import secrets
from typing import Any

import msgspec

from ocp_trio.completion import FinishReason, Usage
from ocp_trio.errors import UpstreamError, UpstreamOverloadedError
from ocp_trio.opencode_go.answer import Answer, Wire

__all__ = ["OpenAiAnswer"]

_FINISH_REASONS: dict[str, FinishReason] = {
    "length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Detail(msgspec.Struct, frozen=True):
    text: str | None = None
    summary: str | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: tuple[_Detail, ...] | None = None
    tool_calls: tuple[_Call, ...] | None = None

    @property
    def thoughts(self) -> str:
        """Reasoning text, which some servers repeat under several names."""
        return (
            self.reasoning_content
            or self.reasoning
            or "".join(detail.text or detail.summary or "" for detail in self.reasoning_details or ())
        )


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None

    def count(self) -> Usage:
        """Count as the vocabulary does: the prompt without what came from the cache or went into it."""
        details = self.prompt_tokens_details or _PromptDetails()
        read = details.cached_tokens or self.prompt_cache_hit_tokens or self.cached_tokens or 0
        written = details.cache_write_tokens or 0
        return Usage(
            input=max(0, (self.prompt_tokens or 0) - read - written),
            output=self.completion_tokens or 0,
            cache_read=read,
            cache_write=written,
            reasoning=(self.completion_tokens_details or _CompletionDetails()).reasoning_tokens or 0,
        )


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: _Usage | None = None


class _Chunk(Wire, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    code: Any = None

    @property
    def is_error(self) -> bool:
        """Whether it is an error object, with its envelope or, from some servers, without."""
        return bool(self.error or (self.code and self.choices is None))


_decoder = msgspec.json.Decoder(_Chunk)


class OpenAiAnswer(Answer[_Chunk]):
    """An answer told in chunks."""

    def __init__(self) -> None:
        super().__init__(_decoder)
        self._call_ids: dict[int, tuple[int, str]] = {}
        self._last_call = 0

    def _read(self, wire: _Chunk) -> str:
        if wire.usage is not None:
            self.usage = wire.usage.count()
        if not wire.choices:
            return "usage" if wire.usage is not None else ""
        self._take_choice(wire.choices[0])
        return "chunk"

    def _take_choice(self, choice: _Choice) -> None:
        delta = choice.delta or _Delta()
        self._think(delta.thoughts)
        self._say(delta.content or "")
        for call in delta.tool_calls or ():
            self._take_call(call)
        if choice.usage is not None:
            self.usage = choice.usage.count()
        if choice.finish_reason:
            self._take_finish(choice.finish_reason)

    def _take_call(self, call: _Call) -> None:
        """Begin a call with the first piece that names it, and take its arguments from all of them.

        Some servers count no calls, or give all the same number: an id that is new begins a call, too.
        """
        function = call.function or _Function()
        wire_index = self._last_call if call.index is None else call.index
        known = self._call_ids.get(wire_index)
        if known is not None and call.id and function.name and call.id != known[1]:
            known = None
        if known is None:
            call_id = call.id or f"call_{secrets.token_hex(12)}"
            known = self._begin_call(call_id, function.name or ""), call_id
            self._call_ids[wire_index] = known
        self._last_call = wire_index
        arguments = function.arguments or ""
        self._argue(known[0], arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode())

    def _take_finish(self, reason: str) -> None:
        match reason:
            case "insufficient_system_resource":
                self._fail(UpstreamOverloadedError("upstream ran out of capacity in mid-answer"))
            case "error" | "network_error":
                self._fail(UpstreamError("upstream broke its answer off with an error"))
            case _:
                self._finish(_FINISH_REASONS.get(reason, "stop"))
