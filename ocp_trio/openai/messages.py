"""The messages of a chat completion request, as they stand in its JSON."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

__all__ = [
    "AssistantMessage",
    "Content",
    "DeveloperMessage",
    "FunctionCall",
    "FunctionMessage",
    "ImagePart",
    "ImageUrl",
    "RefusalPart",
    "SystemMessage",
    "TextPart",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "WireMessage",
]

NonEmpty: TypeAlias = Annotated[str, Meta(min_length=1)]


class TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Text."""

    text: str


class RefusalPart(msgspec.Struct, frozen=True, tag_field="type", tag="refusal"):
    """Text with which the model declined."""

    refusal: str


class ImageUrl(msgspec.Struct, frozen=True):
    """Where an image is: a data URI holds it."""

    url: str


class ImagePart(msgspec.Struct, frozen=True, tag_field="type", tag="image_url"):
    """An image; some clients send its address without the object around it."""

    image_url: ImageUrl | str


Content: TypeAlias = str | tuple[TextPart | RefusalPart | ImagePart, ...] | None
"""Any message's content, seen as one type; each message narrows it to what its role may say."""


class SystemMessage(msgspec.Struct, frozen=True, tag_field="role", tag="system"):
    """Instructions."""

    content: str | tuple[TextPart, ...]


class DeveloperMessage(msgspec.Struct, frozen=True, tag_field="role", tag="developer"):
    """Instructions, under their newer name."""

    content: str | tuple[TextPart, ...]


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    """What the user says."""

    content: str | tuple[TextPart | ImagePart, ...]


class FunctionCall(msgspec.Struct, frozen=True):
    """A function that the model called; ``arguments`` is JSON text of the model's making."""

    name: NonEmpty
    arguments: str


class ToolCall(msgspec.Struct, frozen=True):
    """A call in an assistant's message."""

    id: NonEmpty
    function: FunctionCall
    type: Literal["function"] = "function"


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="role", tag="assistant"):
    """What the model said, called and thought earlier; its audio and annotations are not read.

    Its reasoning comes under whatever name some server gave it: of another type than text it is not read.
    """

    content: str | tuple[TextPart | RefusalPart, ...] | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    function_call: FunctionCall | None = None
    reasoning_content: Any = None
    reasoning: Any = None

    @property
    def thoughts(self) -> str:
        """The reasoning."""
        told = (self.reasoning_content, self.reasoning)
        return next((text for text in told if isinstance(text, str) and text), "")


class ToolMessage(msgspec.Struct, frozen=True, tag_field="role", tag="tool"):
    """What the caller's tool answered."""

    tool_call_id: str
    content: str | tuple[TextPart | ImagePart, ...] | None = None


class FunctionMessage(msgspec.Struct, frozen=True, tag_field="role", tag="function"):
    """What the caller's function answered, in the form that came before tools."""

    name: str
    content: str | tuple[TextPart | ImagePart, ...] | None = None


WireMessage: TypeAlias = (
    SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage
)
