"""The specification's sequences, told by a mock of OpenCode Go, and what its backend makes of them.

Letters as in `upstream`, and A for a piece of a tool call's arguments, D for the mark of the end alone. ``c`` is a
comment in OpenAI's flavour and a ``ping`` event in Anthropic's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest
import trio
from memory_opencode import MemoryProvider, open_memory_opencode
from mock_opencode import KEY, Bytes, chunk, event, usage_chunk
from sse_script import Cut, Raw, Sleep, Step, Usage, Wait, frame
from upstream import Timeline, parse

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    Message,
    Started,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
)
from ocp_trio.errors import OcpError, UpstreamStalledError
from ocp_trio.opencode_go import OpenCodeGoBackend, open_opencode_go

__all__ = ["MODELS", "Go", "ask", "both_flavours", "collect", "failure", "open_go", "request", "script", "told"]

MODELS = {"openai": "kimi-k2.6", "anthropic": "minimax-m2.7"}
"""A model of each flavour."""
both_flavours = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)

_UNKNOWN = frame('{"type":"surprise"}', event="surprise")
_OPENAI = {
    "P": chunk({"content": "P"}),
    "R": chunk({"reasoning_content": "R"}),
    "B": chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]}),
    "A": chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x'}}]}),
    "U": _UNKNOWN,
    "c": b": ping - 12:00\n\n",
    "F": chunk(finish_reason="stop"),
    "N": usage_chunk(Usage(input=10, output=5)),
    "D": frame("[DONE]"),
    "E": frame('{"error":{"type":"overloaded_error","message":"Overloaded"}}'),
}
_ANTHROPIC = {
    "P": event("content_block_delta", index=0, delta={"type": "text_delta", "text": "P"}),
    "R": event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "R"}),
    "B": event("content_block_start", index=1, content_block={"type": "tool_use", "id": "c", "name": "f", "input": {}}),
    "A": event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"x'}),
    "U": _UNKNOWN,
    "c": event("ping"),
    "F": event("message_delta", delta={"stop_reason": "end_turn"}, usage={"input_tokens": 10, "output_tokens": 5}),
    # In this flavour it comes with the finish reason.
    "N": b"",
    "D": event("message_stop"),
    "E": event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
}
_FRAMES = {"kimi-k2.6": _OPENAI, "minimax-m2.7": _ANTHROPIC}
for _frames in _FRAMES.values():
    _frames["T"] = _frames["F"] + _frames["N"] + _frames["D"]


def script(sequence: str, model: str, *, second: float = 1) -> Bytes:
    """Return the answer that follows a sequence, and then holds the connection open.

    Args:
        sequence: As in `upstream`.
        model: One of `MODELS`.
        second: How long a second takes.
    """
    steps: list[Step] = []
    now = 0.0
    for at, item in parse(sequence):
        if at > now:
            steps.append(Sleep((at - now) * second))
            now = at
        match item:
            case "S":
                continue
            case "end":
                steps.append(Cut("truncated"))
            case "fails":
                steps.append(Cut("fin"))
            case _ if data := _FRAMES[model][item]:
                steps.append(Raw(data))
    return Bytes(*steps, Wait(trio.Event()))


def told(batch: Batch) -> list[str]:
    """Return the letters of a batch."""
    return [letter for event in batch if (letter := _letter(event))]


_LETTERS = {Started: "S", ToolCallStart: "B", ToolCallDelta: "A", Completed: "T"}


def _letter(event: Event) -> str:
    match event:
        case TextDelta(text) | ThinkingDelta(text):
            return text
        case Activity("surprise"):
            return "U"
        case Failed(error):
            return failure(error)
        case _:
            return _LETTERS.get(type(event), "")


def failure(error: OcpError) -> str:
    """Say what an error is, in short."""
    if isinstance(error, UpstreamStalledError):
        return f"stalled: {error.facts.phase}"
    return type(error).__name__


def request(model: str, **fields: Any) -> CompletionRequest:
    """Make a request."""
    return CompletionRequest(model=model, messages=(Message("user", (Text("hi"),)),), **fields)


async def collect(batches: AsyncIterator[Batch], *, began: float = 0) -> Timeline:
    """Return how many seconds after ``began`` each event arrived."""
    seen: Timeline = []
    async for batch in batches:
        seen += [(round(trio.current_time() - began, 6), letter) for letter in told(batch)]
    return seen


async def ask(backend: OpenCodeGoBackend, model: str, **fields: Any) -> Timeline:
    """Ask, and return how many seconds later each event arrived, an error in place of an answer included."""
    began = trio.current_time()
    try:
        async with backend.stream(request(model, **fields)) as batches:
            return await collect(batches, began=began)
    except OcpError as error:
        return [(round(trio.current_time() - began, 6), failure(error))]


class Go:
    """A backend and the provider that it asks.

    Attributes:
        provider: The mock, over memory streams.
        backend: The backend.
    """

    def __init__(self, provider: MemoryProvider, backend: OpenCodeGoBackend) -> None:
        self.provider = provider
        self.backend = backend

    async def observe(self, sequence: str, model: str) -> Timeline:
        """Let the provider follow a sequence, and return what was seen of it."""
        self.provider.script(script(sequence, model))
        return await ask(self.backend, model)

    @asynccontextmanager
    async def open(self, sequence: str, model: str) -> AsyncIterator[AsyncIterator[Batch]]:
        """Let the provider follow a sequence, and open the stream of it."""
        self.provider.script(script(sequence, model))
        async with self.backend.stream(request(model)) as batches:
            yield batches


@asynccontextmanager
async def open_go(
    first: float = inf, idle: float = inf, cap: float = inf, *, key: str = KEY, max_connections: int = 100
) -> AsyncIterator[Go]:
    """Open a backend with these limits, in seconds, over memory streams."""
    async with (
        open_memory_opencode() as provider,
        open_opencode_go(
            key,
            base_url=provider.url,
            transport=provider.transport,
            first_event_timeout=first,
            idle_timeout=idle,
            keepalive_cap=cap,
            max_connections=max_connections,
        ) as backend,
    ):
        yield Go(provider, backend)
