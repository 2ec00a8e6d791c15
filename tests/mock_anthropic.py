"""A mock of the Anthropic Messages API, scriptable, that the real CLI talks to.

Wire format: Anthropic's Messages API, version 2023-06-01, as the CLI 2.1.332 asks it. Nothing here claims what the
real service would accept.
"""

import itertools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from scripted_server import RecordedRequest, ScriptedServer, open_scripted_server
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
    Tell,
    Text,
    Thinking,
    ToolUse,
    Usage,
    Wait,
    frame,
)

__all__ = ["MockAnthropic", "api_error", "open_mock_anthropic"]

MockAnthropic: TypeAlias = ScriptedServer
_Event: TypeAlias = dict[str, Any]

_ERROR_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
_ERROR_KIND = {status: kind for kind, status in _ERROR_STATUS.items()}
# Which field of a block each kind of delta fills; the arguments' text becomes ``input`` at the end.
_DELTA_FIELD = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


def api_error(status: int, message: str, *, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return an error response as the API writes it; ``headers`` come on top, such as ``retry-after``."""
    error = _error_event(_ERROR_KIND.get(status, "api_error"), message)
    return HttpAnswer(status, _json(error), {"content-type": "application/json", **(headers or {})})


def _error_event(kind: str, message: str) -> _Event:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


class _Blocks:
    """The content blocks of one message, as events: which of them is open."""

    def __init__(self) -> None:
        self._index = -1
        self._open: str | None = None

    def tell(self, step: Text | Thinking | Signature | ToolUse | Arguments | BlockEnd) -> Iterator[_Event]:
        """Tell one step of content, beginning and ending blocks as it needs."""
        match step:
            case Text(text):
                if self._open != "text":
                    yield from self._begin("text", text="")
                yield self._delta("text_delta", text)
            case Thinking(text):
                if self._open != "thinking":
                    yield from self._begin("thinking", thinking="", signature="")
                yield self._delta("thinking_delta", text)
            case Signature(signature):
                yield self._delta("signature_delta", signature)
            case ToolUse(id_, name):
                yield from self._begin("tool_use", id=id_, name=name, input={})
            case Arguments(text):
                yield self._delta("input_json_delta", text)
            case BlockEnd():
                yield from self.end()

    def end(self) -> Iterator[_Event]:
        """End the open block, if there is one."""
        if self._open is not None:
            self._open = None
            yield {"type": "content_block_stop", "index": self._index}

    def _begin(self, kind: str, **fields: object) -> Iterator[_Event]:
        yield from self.end()
        self._index += 1
        self._open = kind
        yield {"type": "content_block_start", "index": self._index, "content_block": {"type": kind, **fields}}

    def _delta(self, kind: str, text: str) -> _Event:
        return {"type": "content_block_delta", "index": self._index, "delta": {"type": kind, _DELTA_FIELD[kind]: text}}


def _message_start(model: str, message_id: str, usage: Usage) -> _Event:
    message: _Event = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": 1,
        },
    }
    return {"type": "message_start", "message": message}


def _tell(answer: Answer, model: str, message_id: str) -> Iterator[_Event | Raw | Local]:
    """Tell ``answer`` as the events of a stream, and what happens between them."""
    yield _message_start(model, message_id, answer.usage)
    blocks = _Blocks()
    for step in answer.steps:
        match step:
            case Sleep() | Wait() | Tell() | Raw():
                yield step
            case Cut():
                yield step
                return
            case Fail(kind, message):
                yield _error_event(kind, message)
                return
            case Ping():
                yield {"type": "ping"}
            case _:
                yield from blocks.tell(step)
    yield from blocks.end()
    delta = {"stop_reason": answer.stop_reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.usage.output}}
    yield {"type": "message_stop"}


def _gather(message: dict[str, Any], event: _Event) -> dict[str, Any]:
    """Return ``message`` with ``event`` taken in, as a client does that wants the whole message."""
    match event["type"]:
        case "message_start":
            return dict(event["message"])
        case "content_block_start":
            message["content"].append(event["content_block"])
        case "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            name = _DELTA_FIELD[delta["type"]]
            block[name] = block.get(name, "") + delta[name]
        case "content_block_stop":
            block = message["content"][event["index"]]
            if block["type"] == "tool_use":
                block["input"] = json.loads(block.pop("partial_json", "{}"))
        case "message_delta":
            message |= event["delta"]
            message["usage"] |= event["usage"]
    return message


class AnthropicDialect:
    """Tells scripts as the Messages API does; message ids count up from ``msg_mock_0``."""

    def __init__(self) -> None:
        self._ids = (f"msg_mock_{number}" for number in itertools.count())

    def encode(self, answer: Answer, request: RecordedRequest) -> Iterator[bytes | Local]:
        for item in _tell(answer, request.body["model"], next(self._ids)):
            match item:
                case Raw(data):
                    yield data
                case dict():
                    yield frame(_json(item).decode(), event=item["type"])
                case _:
                    yield item

    def fold(self, answer: Answer, request: RecordedRequest) -> HttpAnswer:
        """Gather the events of the stream; what happens between them happens before the headers."""
        message: dict[str, Any] = {}
        happenings = list(answer.before_headers)
        for item in _tell(answer, request.body["model"], next(self._ids)):
            match item:
                case {"type": "error", "error": {"type": kind, "message": text}}:
                    error = api_error(_ERROR_STATUS.get(kind, 500), text)
                    return HttpAnswer(error.status, error.body, error.headers, tuple(happenings))
                case dict():
                    message = _gather(message, item)
                case Raw():
                    # Only an event stream can carry it.
                    continue
                case _:
                    happenings.append(item)
        return HttpAnswer(200, _json(message), before_headers=tuple(happenings))

    def unscripted(self, request: RecordedRequest) -> HttpAnswer | None:
        match request.method, request.path.partition("?")[0]:
            case "POST", "/v1/messages":
                return None
            case "POST", "/v1/messages/count_tokens":
                # About four bytes are a token.
                return HttpAnswer(200, _json({"input_tokens": len(_json(request.body)) // 4}))
            case "HEAD", "/":
                return HttpAnswer(200)
            case "GET", "/v1/models":
                return HttpAnswer(200, _json({"data": [], "has_more": False, "first_id": None, "last_id": None}))
            case _:
                return api_error(404, f"{request.method} {request.path} is not mocked")


@asynccontextmanager
async def open_mock_anthropic() -> AsyncIterator[MockAnthropic]:
    """Serve a mock of the Messages API on the loopback for the length of a block.

    Cancellation: leaving the block ends every answer at once.
    """
    async with open_scripted_server(AnthropicDialect()) as mock:
        yield mock
