"""What a backend says happened; exactly one terminal event ends every stream."""

from typing import Literal, TypeAlias

import msgspec

from ocp_trio.errors import OcpError

__all__ = [
    "Activity",
    "Batch",
    "Completed",
    "Event",
    "Failed",
    "FinishReason",
    "Refusal",
    "Started",
    "TextDelta",
    "TextEnd",
    "ThinkingDelta",
    "ThinkingEnd",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "Usage",
]


FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]


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
