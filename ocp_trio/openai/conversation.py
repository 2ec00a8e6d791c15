"""Turn a request's messages into a system text and turns that alternate between user and assistant."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ocp_trio.completion import Image, Message, Part, Text, ToolResult, ToolUse
from ocp_trio.errors import InvalidRequestError, RequestTooLargeError
from ocp_trio.openai.decoding import check_nesting, decode
from ocp_trio.openai.images import ImageLimits, decoded_size, parse_image
from ocp_trio.openai.messages import (
    AssistantMessage,
    Content,
    DeveloperMessage,
    FunctionMessage,
    ImagePart,
    ImageUrl,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    WireMessage,
)

__all__ = ["UNPARSED", "Conversation", "parse_arguments", "read_conversation"]

UNPARSED = "_raw"
"""Key under which arguments that are no JSON object are kept, as text: models cut them short now and then."""

_arguments_decoder = msgspec.json.Decoder(dict[str, Any])


class Conversation(msgspec.Struct, frozen=True):
    """All system and developer texts, joined by blank lines, and the turns; the last one is a user's."""

    system: str
    messages: tuple[Message, ...]


def read_conversation(messages: Sequence[WireMessage], limits: ImageLimits) -> Conversation:
    """Read ``messages``, in order.

    Texts that are nothing but white space are left out, as no model accepts them. Tool results become part of a user's
    turn. Neighbours of the same role become one turn.

    Raises:
        InvalidRequestError: tool calls and results do not match, or the last turn is not a user's.
        RequestTooLargeError: too many images, or one that is too large.
    """
    reader = _Reader(limits)
    for index, message in enumerate(messages):
        reader.add(message, index)
    return reader.finish()


def parse_arguments(text: str) -> dict[str, Any]:
    """Decode a call's arguments; what is no JSON object is kept under `UNPARSED`, and empty text is no arguments."""
    if not text or text.isspace():
        return {}
    try:
        arguments = decode(text.encode(), _arguments_decoder)
        check_nesting(arguments, "arguments")
    except InvalidRequestError:
        return {UNPARSED: text}
    else:
        return arguments


class _Turn(NamedTuple):
    """A turn that may be extended."""

    role: Literal["user", "assistant"]
    parts: list[Part]
    thoughts: list[str]

    def finish(self) -> Message:
        return Message(self.role, tuple(self.parts), "\n\n".join(filter(None, self.thoughts)))


class _Reader:
    """The turns read so far, and the calls whose results have to come next."""

    def __init__(self, limits: ImageLimits) -> None:
        self._limits = limits
        self._images = self._image_bytes = 0
        self._system: list[str] = []
        self._turns: list[_Turn] = []
        self._open_calls: dict[str, str] = {}

    def add(self, message: WireMessage, index: int) -> None:
        where = f"messages[{index}]"
        match message:
            case SystemMessage() | DeveloperMessage():
                # These stand outside the turns, so one between a call and its result does no harm.
                self._system += (part.text for part in self._parts(message.content, where) if isinstance(part, Text))
            case UserMessage():
                self._check_no_open_calls(where)
                self._extend("user", self._parts(message.content, where))
            case AssistantMessage():
                self._check_no_open_calls(where)
                parts = [*self._parts(message.content, where), *self._calls(message, index)]
                self._extend("assistant", parts, message.thoughts)
            case ToolMessage():
                self._add_result(message.tool_call_id, message.content, where, f"{where}.tool_call_id")
            case FunctionMessage():
                call_id = next((key for key, name in self._open_calls.items() if name == message.name), "")
                self._add_result(call_id, message.content, where, f"{where}.name")

    def finish(self) -> Conversation:
        self._check_no_open_calls("messages")
        if not self._turns or self._turns[-1].role != "user":
            raise InvalidRequestError(
                "messages: the last one has to be a user's or a tool's, and more than white space",
                code="unsupported_value",
                param="messages",
            )
        return Conversation("\n\n".join(self._system), tuple(turn.finish() for turn in self._turns))

    def _extend(self, role: Literal["user", "assistant"], parts: Iterable[Part], thoughts: str = "") -> None:
        added = list(parts)
        if not added:
            return
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role, [], []))
        self._turns[-1].parts.extend(added)
        self._turns[-1].thoughts.append(thoughts)

    def _calls(self, message: AssistantMessage, index: int) -> Iterator[ToolUse]:
        calls = list(message.tool_calls or ())
        if message.function_call:
            # Calls of this older form have no id: their place in the request is the same each time it is sent.
            calls.append(ToolCall(f"function_call_{index}", message.function_call))
        for number, call in enumerate(calls):
            if call.id in self._open_calls:
                param = f"messages[{index}].tool_calls[{number}].id"
                raise InvalidRequestError(f"{param}: used twice", code="unsupported_value", param=param)
            self._open_calls[call.id] = call.function.name
            yield ToolUse(call.id, call.function.name, parse_arguments(call.function.arguments))

    def _add_result(self, call_id: str, content: Content, where: str, param: str) -> None:
        if self._open_calls.pop(call_id, None) is None:
            raise InvalidRequestError(
                f"{param}: matches no unanswered call of the assistant's message before",
                code="unsupported_value",
                param=param,
            )
        self._extend("user", [ToolResult(call_id, tuple(self._parts(content, where)))])

    def _check_no_open_calls(self, param: str) -> None:
        if self._open_calls:
            call_id = next(iter(self._open_calls))[:64]
            raise InvalidRequestError(
                f"{param}: the tool call {call_id!r} before has no result", code="unsupported_value", param=param
            )

    def _parts(self, content: Content, where: str) -> Iterator[Text | Image]:
        if isinstance(content, str):
            content = (TextPart(content),)
        for index, part in enumerate(content or ()):
            match part:
                case TextPart(text) | RefusalPart(text):
                    if text and not text.isspace():
                        yield Text(text)
                case ImagePart(image):
                    url = image.url if isinstance(image, ImageUrl) else image
                    yield self._image(url, f"{where}.content[{index}].image_url")

    def _image(self, url: str, param: str) -> Image:
        self._images += 1
        if self._images > self._limits.max_count:
            raise RequestTooLargeError(f"{param}: over {self._limits.max_count} images in one request", param=param)
        image = parse_image(url, self._limits, param)
        self._image_bytes += decoded_size(image.data)
        if self._image_bytes > self._limits.max_total_bytes:
            problem = f"{param}: the images of one request are over {self._limits.max_total_bytes} bytes together"
            raise RequestTooLargeError(problem, param=param)
        return image
