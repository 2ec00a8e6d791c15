"""What is asked, whatever dialect it was asked in."""

from typing import Any, Literal, TypeAlias

import msgspec

__all__ = [
    "CompletionRequest",
    "Image",
    "JsonFormat",
    "Message",
    "Part",
    "Sampling",
    "Text",
    "Tool",
    "ToolChoice",
    "ToolResult",
    "ToolUse",
]


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
