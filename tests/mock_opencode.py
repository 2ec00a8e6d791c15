"""A mock of OpenCode Go, scriptable, in both its flavours.

It wants the key and a session name as the service does; nothing else here claims what that would accept. Where the
flavours differ, a script means: `Ping` is a comment in OpenAI's flavour and a ``ping`` event in Anthropic's; `BlockEnd`
has no wire form in OpenAI's.
"""

import itertools
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mock_anthropic import AnthropicDialect
from scripted_server import Dialect, RecordedRequest, ScriptedServer, open_scripted_server
from sse_script import (
    Answer,
    Arguments,
    BlockEnd,
    Cut,
    Fail,
    HttpAnswer,
    Local,
    Ping,
    Raw,
    Signature,
    Sleep,
    Step,
    Tell,
    Text,
    Thinking,
    ToolUse,
    Usage,
    Wait,
    frame,
)

__all__ = [
    "KEY",
    "Bytes",
    "OpenCodeDialect",
    "chunk",
    "event",
    "open_mock_opencode",
    "refusal",
    "usage_chunk",
]

KEY = "mock-key-0123456789"
"""The only key that it accepts."""

_FINISH_REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length"}


class Bytes(Answer):
    """An answer of `Raw` bytes and what happens between them: nothing is put before or after them."""


def refusal(status: int, kind: str, message: str, **headers: str) -> HttpAnswer:
    """Return an error response as the service writes it; ``headers`` come on top, with ``_`` for ``-``."""
    body = {"type": "error", "error": {"type": kind, "message": message}}
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status, json.dumps(body).encode(), {"content-type": "application/json", **fields})


def event(name: str, **fields: Any) -> bytes:
    """Return a frame of Anthropic's flavour."""
    return frame(json.dumps({"type": name, **fields}), event=name)


def chunk(delta: dict[str, Any] | None = None, *, finish_reason: str | None = None, **fields: Any) -> bytes:
    """Return a frame of OpenAI's flavour with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish_reason}
    return _frame([choice], **fields)


def usage_chunk(usage: Usage) -> bytes:
    """Return the frame of OpenAI's flavour that tells what an answer cost."""
    prompt = usage.input + usage.cache_read
    told = {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
    return _frame([], usage=told)


def _frame(choices: list[dict[str, Any]], **fields: Any) -> bytes:
    head = {"id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    return frame(json.dumps({**head, "choices": choices, **fields}, ensure_ascii=False))


class _OpenAiDialect:
    """Tells scripts as OpenAI's chat completions do."""

    def unscripted(self, request: RecordedRequest) -> HttpAnswer | None:  # noqa: ARG002 (a Dialect)
        return None

    def encode(self, answer: Answer, request: RecordedRequest) -> Iterator[bytes | Local]:
        yield chunk({"role": "assistant", "content": ""})
        calls = itertools.count()
        call = -1
        for step in answer.steps:
            match step:
                case ToolUse(call_id, name):
                    call = next(calls)
                    function = {"name": name, "arguments": ""}
                    start = {"index": call, "id": call_id, "type": "function", "function": function}
                    yield chunk({"tool_calls": [start]})
                case Arguments(text):
                    yield chunk({"tool_calls": [{"index": call, "function": {"arguments": text}}]})
                case Fail(kind, message):
                    yield frame(json.dumps({"error": {"type": kind, "message": message}}))
                    return
                case _:
                    yield from self._simple(step)
                    if isinstance(step, Cut):
                        return
        yield chunk(finish_reason=_FINISH_REASONS.get(answer.stop_reason, answer.stop_reason))
        if (request.body.get("stream_options") or {}).get("include_usage"):
            yield usage_chunk(answer.usage)
        yield frame("[DONE]")

    def _simple(self, step: Step) -> Iterator[bytes | Local]:
        match step:
            case Text(text):
                yield chunk({"content": text})
            case Thinking(text):
                yield chunk({"reasoning_content": text})
            case Ping():
                yield b": ping - 1\n\n"
            case Raw(data):
                yield data
            case Sleep() | Wait() | Tell() | Cut():
                yield step
            case BlockEnd() | Signature():
                return

    def fold(self, answer: Answer, request: RecordedRequest) -> HttpAnswer:
        text = "".join(step.text for step in answer.steps if isinstance(step, Text))
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": _FINISH_REASONS[answer.stop_reason]}
        usage = {"prompt_tokens": answer.usage.input, "completion_tokens": answer.usage.output, "total_tokens": 0}
        body = {"id": "chatcmpl-mock", "object": "chat.completion", "created": 1, "model": request.body["model"]}
        return HttpAnswer(200, json.dumps({**body, "choices": [choice], "usage": usage}).encode())


class OpenCodeDialect:
    """Tells scripts in the flavour of the path that is asked, to whoever brings key and session."""

    def __init__(self) -> None:
        self._flavours: dict[str, Dialect] = {
            "/v1/chat/completions": _OpenAiDialect(),
            "/v1/messages": AnthropicDialect(),
        }

    def encode(self, answer: Answer, request: RecordedRequest) -> Iterable[bytes | Local]:
        if isinstance(answer, Bytes):
            return _as_they_are(answer)
        return self._flavours[_path(request)].encode(answer, request)

    def fold(self, answer: Answer, request: RecordedRequest) -> HttpAnswer:
        return self._flavours[_path(request)].fold(answer, request)

    def unscripted(self, request: RecordedRequest) -> HttpAnswer | None:
        if _path(request) not in self._flavours or request.method != "POST":
            return refusal(404, "not_found", f"{request.method} {request.path} is not mocked")
        if KEY not in (
            request.headers.get("x-api-key"),
            request.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            return refusal(401, "AuthError", "Invalid API key.")
        if "x-opencode-session" not in request.headers:
            return refusal(400, "MissingSessionID", "Request is missing x-opencode-session.")
        return None


def _as_they_are(answer: Bytes) -> Iterator[bytes | Local]:
    for step in answer.steps:
        match step:
            case Raw(data):
                yield data
            case Sleep() | Wait() | Tell() | Cut():
                yield step


def _path(request: RecordedRequest) -> str:
    """Return the path alone: whoever asks through a proxy names the host as well."""
    return httpx.URL(request.path).path.removeprefix("/zen/go")


@asynccontextmanager
async def open_mock_opencode() -> AsyncIterator[ScriptedServer]:
    """Serve the mock on the loopback for the length of a block.

    Cancellation: leaving the block ends every answer at once.
    """
    async with open_scripted_server(OpenCodeDialect()) as mock:
        yield mock
