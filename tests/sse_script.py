"""What a scripted model API answers: steps that each dialect of the wire tells in its own words.

A step without a wire form of its own (`Sleep`, `Wait`, `Tell`, `Cut`) is carried out by `scripted_server`; the others
become frames in a dialect such as `mock_anthropic`. Deltas of one kind that follow each other share a block.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import trio

__all__ = [
    "Answer",
    "Arguments",
    "BlockEnd",
    "Cut",
    "Fail",
    "HttpAnswer",
    "Local",
    "Ping",
    "Raw",
    "Signature",
    "Sleep",
    "Step",
    "Tell",
    "Text",
    "Thinking",
    "ToolUse",
    "Usage",
    "Wait",
    "frame",
]


@dataclass(frozen=True)
class Text:
    """A delta of visible text."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """A delta of reasoning text."""

    text: str


@dataclass(frozen=True)
class Signature:
    """The signature of the open block of reasoning."""

    signature: str


@dataclass(frozen=True)
class ToolUse:
    """Begin of a tool call; its arguments follow."""

    id: str
    name: str


@dataclass(frozen=True)
class Arguments:
    """A delta of the JSON text of the open tool call's arguments."""

    json: str


@dataclass(frozen=True)
class BlockEnd:
    """End of the open block; without it a delta of another kind, or the end of the answer, ends it."""


@dataclass(frozen=True)
class Ping:
    """A sign of life that carries nothing."""


@dataclass(frozen=True)
class Raw:
    """Bytes as they stand: unknown events, half characters, nonsense."""

    data: bytes


@dataclass(frozen=True)
class Fail:
    """An error in mid-stream, of the dialect's own error type ``kind``; the answer ends with it."""

    kind: str = "overloaded_error"
    message: str = "Overloaded"


@dataclass(frozen=True)
class Sleep:
    """Say nothing for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Wait:
    """Say nothing until the test sets ``event``."""

    event: trio.Event


@dataclass(frozen=True)
class Tell:
    """Set ``event``, so that the test knows how far the answer has come."""

    event: trio.Event


@dataclass(frozen=True)
class Cut:
    """End the answer too early.

    ``truncated`` ends the body as HTTP wants it; ``fin`` closes the connection within the body; ``rst`` resets it.
    A peer may lose what it has not read by then: `Wait` for the test to have seen it.
    """

    how: Literal["truncated", "fin", "rst"]


Local: TypeAlias = Sleep | Wait | Tell | Cut
Step: TypeAlias = Text | Thinking | Signature | ToolUse | Arguments | BlockEnd | Ping | Raw | Fail | Local


@dataclass(frozen=True)
class Usage:
    """Tokens, as the API bills them."""

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0


class Answer:
    """One answer of the model, told as an event stream or as one JSON body, as the request wants it.

    Args:
        steps: What happens, in order.
        stop_reason: The dialect's own reason why the answer ends.
        usage: What the answer costs.
        before_headers: What happens before the status line is sent.
    """

    def __init__(
        self,
        *steps: Step,
        stop_reason: str = "end_turn",
        usage: Usage | None = None,
        before_headers: tuple[Local, ...] = (),
    ) -> None:
        self.steps = steps
        self.stop_reason = stop_reason
        self.usage = usage or Usage()
        self.before_headers = before_headers


@dataclass(frozen=True)
class HttpAnswer:
    """A whole HTTP response: an error, or whatever is not scripted; a `Cut` in ``before_headers`` leaves it out."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    before_headers: tuple[Local, ...] = ()


def frame(data: str, *, event: str | None = None) -> bytes:
    """Return one frame of a WHATWG event stream; ``data`` is a single line."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {data}\n\n".encode()
