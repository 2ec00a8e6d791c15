"""The chat completion chunk of OpenAI's reference, as it stands in the data of a stream's frames.

For the description alone: `ChunkEncoder` writes frames from parts that are encoded once for each stream.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ocp_trio.completion import FinishReason
from ocp_trio.openai.completion_object import UsageObject

__all__ = ["ChunkObject"]


class FunctionDelta(msgspec.Struct, frozen=True):
    """The name of a function in its first delta, then pieces of the JSON text of its arguments."""

    arguments: str
    name: str | UnsetType = UNSET


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A piece of a call; id and type stand in its first one."""

    index: int
    function: FunctionDelta
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class Delta(msgspec.Struct, frozen=True):
    """A piece of the answer; the role stands in the first one, and the last one is empty."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    tool_calls: tuple[ToolCallDelta, ...] | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, frozen=True):
    """The one answer, continued; only the last chunk tells why it ended."""

    index: Literal[0]
    delta: Delta
    finish_reason: FinishReason | None


class ChunkObject(msgspec.Struct, frozen=True):
    """A chunk; ``usage`` is there only if it was asked for, and null but in the last one, which has no choices."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: UsageObject | UnsetType | None = UNSET
