"""The vocabulary between backends and whoever consumes them: requests in, events out.

A backend turns a `CompletionRequest` into a stream of *batches*: tuples of events, one batch for everything decoded
from one read. An empty batch means that upstream is alive and said nothing a client sees. Exactly one terminal event
(`Completed` or `Failed`) ends every stream.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ocp_trio.errors import OcpError

__all__ = [
    "Activity",
    "Backend",
    "Batch",
    "Completed",
    "CompletionRequest",
    "Event",
    "Failed",
    "FinishReason",
    "Image",
    "Message",
    "Model",
    "Part",
    "Refusal",
    "Started",
    "Text",
    "TextDelta",
    "TextEnd",
    "ThinkingDelta",
    "ThinkingEnd",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolResult",
    "ToolUse",
    "Usage",
]

FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]


class Text(msgspec.Struct, frozen=True):
    """A text part of a message."""

    text: str


class Image(msgspec.Struct, frozen=True):
    """An image part: base64 ``data`` of ``media_type``, or a ``url`` that upstream fetches."""

    media_type: str = ""
    data: str = ""
    url: str = ""


class ToolUse(msgspec.Struct, frozen=True):
    """A call that the model made earlier; ``input`` is its decoded JSON object."""

    id: str
    name: str
    input: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True):
    """What the caller's tool answered to call ``id``."""

    id: str
    content: tuple[Text | Image, ...]
    is_error: bool = False


Part: TypeAlias = Text | Image | ToolUse | ToolResult


class Message(msgspec.Struct, frozen=True):
    """One turn of the conversation; a turn of either role may have any number of parts."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to complete, whatever dialect it was asked in.

    ``messages`` alternate between the roles and end with a user's turn. ``system`` holds all system and developer
    texts, in order. ``max_tokens`` of None leaves the limit to the model; ``effort`` of None likewise.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    max_tokens: int | None = None
    effort: str | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a whole answer; ``input`` counts what neither came from nor went into the prompt cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Started(msgspec.Struct, frozen=True):
    """The work was begun, here; it proves nothing about the model."""


class TextDelta(msgspec.Struct, frozen=True):
    """Visible text."""

    text: str


class TextEnd(msgspec.Struct, frozen=True):
    """End of a block of visible text."""


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no answer of the form that was asked for; stands in the place of visible text."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True):
    """Reasoning text."""

    text: str


class ThinkingEnd(msgspec.Struct, frozen=True):
    """End of a block of reasoning text."""


class ToolCallStart(msgspec.Struct, frozen=True):
    """The model begins to call tool ``name``; ``index`` counts the calls of this answer from 0."""

    index: int
    id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A piece of the JSON text of call ``index``'s arguments."""

    index: int
    arguments: str


class ToolCallEnd(msgspec.Struct, frozen=True):
    """The arguments of call ``index`` are complete."""

    index: int


class Activity(msgspec.Struct, frozen=True):
    """Upstream said something of this ``kind`` that a client does not see: life, nothing else.

    ``usage`` is what the answer has cost so far, where upstream has just told it.
    """

    kind: str
    usage: Usage | None = None


class Completed(msgspec.Struct, frozen=True):
    """The answer is complete."""

    finish_reason: FinishReason
    usage: Usage = Usage()


class Failed(msgspec.Struct, frozen=True):
    """There will be no (further) answer, and why."""

    error: OcpError


Event: TypeAlias = (
    Started
    | TextDelta
    | TextEnd
    | Refusal
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | Activity
    | Completed
    | Failed
)
Batch: TypeAlias = tuple[Event, ...]


class Model(msgspec.Struct, frozen=True):
    """A model that a backend serves: its id, window and longest answer in tokens, other names it goes by."""

    id: str
    context_window: int
    max_output: int
    aliases: tuple[str, ...] = ()


class Backend(Protocol):
    """What produces a completion.

    Errors before the first event leave `stream` (or the first iteration) as an `OcpError`; afterwards they arrive as
    `Failed`. Leaving the block ends whatever the request had started, within the backend's own stated bound.
    """

    @property
    def name(self) -> str:
        """Who owns the models, as clients are told."""
        ...

    @property
    def models(self) -> tuple[Model, ...]:
        """What is served."""
        ...

    def resolve(self, model: str) -> str | None:
        """Return the id under which ``model`` is served here; None if it is not."""
        ...

    def stream(self, request: CompletionRequest) -> AbstractAsyncContextManager[AsyncIterator[Batch]]:
        """Open a stream of batches for the length of a block."""
        ...
