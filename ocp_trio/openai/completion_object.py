"""The chat completion object of OpenAI's reference, as it stands in an answer's JSON."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ocp_trio.completion import FinishReason, Usage

__all__ = [
    "AnswerMessage",
    "Choice",
    "CompletionDetails",
    "CompletionObject",
    "Function",
    "PromptDetails",
    "ToolCallObject",
    "UsageObject",
    "usage_object",
]


class PromptDetails(msgspec.Struct, frozen=True):
    """Where the prompt's tokens came from."""

    cached_tokens: int
    cache_write_tokens: int


class CompletionDetails(msgspec.Struct, frozen=True):
    """What the answer's tokens were spent on."""

    reasoning_tokens: int


class UsageObject(msgspec.Struct, frozen=True):
    """Tokens as OpenAI counts them: those from and into the prompt cache are part of the prompt."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class Function(msgspec.Struct, frozen=True):
    """A function and the JSON text of its arguments."""

    name: str
    arguments: str


class ToolCallObject(msgspec.Struct, frozen=True, kw_only=True):
    """A call in an answer."""

    id: str
    type: Literal["function"] = "function"
    function: Function


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The answer; ``content`` is None if there are only calls, or a refusal."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: tuple[ToolCallObject, ...] | UnsetType = UNSET


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer, and why it ended."""

    index: Literal[0] = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: FinishReason


class CompletionObject(msgspec.Struct, frozen=True, kw_only=True):
    """A whole chat completion."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice]
    usage: UsageObject


def usage_object(usage: Usage) -> UsageObject:
    """Count ``usage`` as OpenAI does."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    return UsageObject(
        prompt_tokens=prompt,
        completion_tokens=usage.output,
        total_tokens=prompt + usage.output,
        prompt_tokens_details=PromptDetails(usage.cache_read, usage.cache_write),
        completion_tokens_details=CompletionDetails(usage.reasoning),
    )
