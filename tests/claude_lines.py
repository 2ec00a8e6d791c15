"""Lines as the CLI prints them, each as small as a test needs it, and what a client sees of them."""

import json
from typing import Any, TypeAlias

from ocp_trio.claude.reconcile import Reconciler
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.completion import Activity, Event, Failed

__all__ = [
    "Json",
    "abandoned",
    "assistant",
    "block",
    "delta",
    "encoded",
    "event",
    "feed",
    "message_delta",
    "message_start",
    "message_stop",
    "result",
    "seen",
    "stop",
    "streamed",
    "text",
    "thinking",
    "tool_result",
    "tool_use",
    "user",
]

Json: TypeAlias = dict[str, Any]


def encoded(*lines: Json) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def feed(reconciler: Reconciler, *lines: Json) -> list[Event]:
    """Return all events of ``lines``, each read by itself."""
    decoder = StreamJsonDecoder()
    return [event for line in lines for event in reconciler.feed(decoder.feed(encoded(line)))]


def seen(*lines: Json) -> list[object]:
    """Return the events of an answer that a client sees; an error as its class and message."""
    events = [event for event in feed(Reconciler(), *lines) if not isinstance(event, Activity)]
    return [(type(event.error), str(event.error)) if isinstance(event, Failed) else event for event in events]


# Events of the API's stream


def event(kind: str, **fields: object) -> Json:
    return {"type": "stream_event", "event": {"type": kind, **fields}, "parent_tool_use_id": None}


def message_start(message_id: str = "m1", **usage: int) -> Json:
    return event("message_start", message={"id": message_id, "content": [], "usage": usage})


def block(index: int = 0, kind: str = "text", **fields: str) -> Json:
    return event("content_block_start", index=index, content_block={"type": kind, **fields})


def delta(said: str, index: int = 0, kind: str = "text") -> Json:
    return event("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: said})


def stop(index: int = 0) -> Json:
    return event("content_block_stop", index=index)


def message_delta(stop_reason: str | None = "end_turn", **usage: int) -> Json:
    return event("message_delta", delta={"stop_reason": stop_reason}, usage=usage)


def message_stop() -> Json:
    return event("message_stop")


def abandoned(from_block_index: int = 0) -> Json:
    """Return the end of a message that broke off."""
    return event("message_stop") | {"abandoned_blocks": {"api_message_id": "m", "from_block_index": from_block_index}}


# Blocks, and the lines that have them whole


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def thinking(said: str) -> Json:
    return {"type": "thinking", "thinking": said, "signature": "s"}


def tool_use(call_id: str = "toolu_1") -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "true"}}


def tool_result(call_id: str = "toolu_1") -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "done", "is_error": False}


def assistant(*blocks: Json, message_id: str = "m1", stop_reason: str | None = None, **fields: object) -> Json:
    message = {"id": message_id, "role": "assistant", "content": list(blocks), "stop_reason": stop_reason}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, **fields}


def user(*blocks: Json, **fields: object) -> Json:
    return {"type": "user", "message": {"role": "user", "content": list(blocks)}, "parent_tool_use_id": None, **fields}


def streamed(*said: str, message_id: str = "m1", stop_reason: str = "end_turn", output_tokens: int = 5) -> list[Json]:
    """Return a message of one text block, as it comes with its aggregate."""
    begin = [message_start(message_id, input_tokens=3, output_tokens=1), block()]
    end = [stop(), message_delta(stop_reason, output_tokens=output_tokens), message_stop()]
    return [*begin, *map(delta, said), assistant(text("".join(said)), message_id=message_id), *end]


def result(said: str = "", **fields: object) -> Json:
    """Return the end of a turn; without fields: a good one, whose tokens nobody has counted."""
    return {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": said, **fields}
