"""The vocabulary between backends and whoever consumes them: requests in, events out.

A backend turns a `CompletionRequest` into a stream of *batches*: tuples of events, one batch for everything decoded
from one read. An empty batch means that upstream is alive and said nothing a client sees. Exactly one terminal event
(`Completed` or `Failed`) ends every stream.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ocp_trio.backend_state import BackendState
from ocp_trio.errors import OcpError

__all__ = [
    "Activity",
    "Backend",
    "BackendState",
    "Batch",
    "Completed",
    "CompletionRequest",
    "Event",
    "Failed",
    "FinishReason",
    "Image",
    "JsonFormat",
    "Message",
    "Model",
    "Part",
    "Refusal",
    "Sampling",
    "Started",
    "Text",
    "TextDelta",
    "TextEnd",
    "ThinkingDelta",
    "ThinkingEnd",
    "Tool",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
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
    """One turn of the conversation; a turn of either role may have any number of parts.

    ``reasoning`` is what the model thought before an assistant's turn, where the caller tells it again.
    """

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]
    reasoning: str = ""


class Tool(msgspec.Struct, frozen=True):
    """A tool on offer; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolChoice(msgspec.Struct, frozen=True):
    """Whether tools may or must be called; ``names`` narrows it to some of them, empty means any."""

    mode: Literal["none", "auto", "required"] = "auto"
    names: tuple[str, ...] = ()


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn, where a backend lets a caller say so; None leaves it to the model."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None


class JsonFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The answer has to be JSON: what ``schema`` describes, or any object where it is None."""

    schema: dict[str, Any] | None = None
    name: str = "answer"
    description: str | None = None
    strict: bool | None = None


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to complete, whatever dialect it was asked in.

    ``messages`` alternate between the roles and end with a user's turn. ``system`` holds all system and developer
    texts, in order. ``max_tokens`` of None leaves the limit to the model; ``effort`` of None likewise. ``caller`` names
    whose request it is: nothing that a backend keeps is ever shared between two callers. ``session`` is what the caller
    calls the conversation. A backend honours as much of the rest as its model takes.
    """

    model: str
    messages: tuple[Message, ...]
    system: str = ""
    max_tokens: int | None = None
    effort: str | None = None
    caller: str = ""
    session: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    response_format: JsonFormat | None = None


class Usage(msgspec.Struct, frozen=True):
    """Tokens of a whole answer; ``input`` counts what neither came from nor went into the prompt cache.

    ``cost_usd`` is what upstream says that they cost; None where it does not say.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum; a cost that is not known counts as none beside one that is."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
            sum(known) if known else None,
        )


class Started(msgspec.Struct, frozen=True, tag=True):
    """The work was begun, here, after it had waited ``queued`` seconds for its turn; the model has said nothing yet."""

    queued: float = 0.0


class TextDelta(msgspec.Struct, frozen=True, tag=True):
    """Visible text."""

    text: str


class TextEnd(msgspec.Struct, frozen=True, tag=True):
    """End of a block of visible text."""


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Why there is no answer of the form that was asked for; stands in the place of visible text."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag=True):
    """Reasoning text."""

    text: str


class ThinkingEnd(msgspec.Struct, frozen=True, tag=True):
    """End of a block of reasoning text."""


class ToolCallStart(msgspec.Struct, frozen=True, tag=True):
    """The model begins to call tool ``name``; ``index`` counts the calls of this answer from 0."""

    index: int
    id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True, tag=True):
    """A piece of the JSON text of call ``index``'s arguments."""

    index: int
    arguments: str


class ToolCallEnd(msgspec.Struct, frozen=True, tag=True):
    """The arguments of call ``index`` are complete."""

    index: int


class Activity(msgspec.Struct, frozen=True, tag=True):
    """Upstream said something of this ``kind`` that a client does not see: life, nothing else.

    ``usage`` is what the answer has cost so far, where upstream has just told it.
    """

    kind: str
    usage: Usage | None = None


class Completed(msgspec.Struct, frozen=True, tag=True):
    """The answer is complete."""

    finish_reason: FinishReason
    usage: Usage = Usage()


class Failed(msgspec.Struct, frozen=True, tag=True):
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
    """A model that a backend serves: its id, window and longest answer in tokens (0: unknown), its other names.

    ``sampling`` names the fields of `Sampling` that it takes.
    """

    id: str
    context_window: int
    max_output: int
    aliases: tuple[str, ...] = ()
    sampling: tuple[str, ...] = ()


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

    @property
    def state(self) -> BackendState:
        """What it does now."""
        ...

    def resolve(self, model: str) -> str | None:
        """Return the id under which ``model`` is served here; None if it is not."""
        ...

    def stream(self, request: CompletionRequest) -> AbstractAsyncContextManager[AsyncIterator[Batch]]:
        """Open a stream of batches for the length of a block."""
        ...
