"""Decode the body of a chat completion request into typed values."""

import codecs
import re
from itertools import islice
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw

from ocp_trio.completion import Message, Sampling
from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.conversation import read_conversation
from ocp_trio.openai.decoding import check_nesting, decode
from ocp_trio.openai.images import DEFAULT_IMAGE_LIMITS, ImageLimits
from ocp_trio.openai.parameters import ChatBody, JsonSchemaFormat, ResponseFormat, TextFormat
from ocp_trio.openai.tools import Tool, ToolChoice, check_tool_choice, read_tool_choice, read_tools

__all__ = ["EFFORTS", "MAX_IGNORED", "ChatRequest", "parameter_table", "parse_chat_request"]

MAX_IGNORED = 32
"""Ignored parameters that are reported; each by at most 64 characters, so that a header holds them."""

EFFORTS = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
"""OpenAI's reasoning efforts, and the levels of the CLI 2.1.332 that come closest."""

_HONOURED = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "n",
        "stop",
        "response_format",
        "reasoning_effort",
        "max_tokens",
        "max_completion_tokens",
        "session_id",
        "conversation_id",
    }
)
_TOOLS = frozenset({"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"})
_REFUSED = frozenset({"n", "tool_choice", "function_call"})
"""Parameters with values that are refused: more than one answer, a call that has to be made."""

_SAMPLING = frozenset(Sampling.__struct_fields__)

Treatment: TypeAlias = Literal["honoured", "passed", "ignored", "refused"]
_NOT_TOKEN = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]")


def parameter_table(*, tools_supported: bool = False) -> dict[str, Treatment]:
    """Say of each known parameter what becomes of it; unknown ones are ignored.

    ``passed`` on is one that some models take; with others it is ignored. ``refused`` is one that has no more than a
    harmless value: ``n`` of 1, a ``tool_choice`` that forces no call.
    """
    honoured = _HONOURED | _TOOLS if tools_supported else _HONOURED
    refused = {"n"} if tools_supported else _REFUSED
    becomes: dict[str, Treatment] = dict.fromkeys(sorted(ChatBody.__struct_fields__), "ignored")
    becomes |= dict.fromkeys(_SAMPLING, "passed")
    becomes |= dict.fromkeys(honoured, "honoured")
    return becomes | dict.fromkeys(refused, "refused")


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request, read and checked.

    ``messages`` alternate between the roles and end with a user's turn; ``system`` joins all system and developer
    texts. ``ignored`` names the parameters that were sent and that nothing here depends on, those of ``sampling`` among
    them, in the order sent, each safe in a header. ``bypass_cache`` is set if the caller controls caching itself
    (``cache_control``).
    """

    model: str
    messages: tuple[Message, ...]
    system: str
    stream: bool
    include_usage: bool
    session: str | None
    stop: tuple[str, ...]
    response_format: ResponseFormat
    reasoning_effort: str | None
    max_tokens: int | None
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    sampling: Sampling
    ignored: tuple[str, ...]
    bypass_cache: bool


_body_decoder = msgspec.json.Decoder(ChatBody)
_names_decoder = msgspec.json.Decoder(dict[str, Raw])


def parse_chat_request(
    body: bytes, *, limits: ImageLimits = DEFAULT_IMAGE_LIMITS, tools_supported: bool = False
) -> ChatRequest:
    """Decode and check a request's body; OpenAI's reference of ``POST /v1/chat/completions`` names the fields.

    Args:
        body: JSON, whatever its content type said; a byte order mark in front is skipped.
        limits: What is accepted of images.
        tools_supported: Whether the backend can offer the caller's tools, and so be made to call one.

    Raises:
        InvalidRequestError: the body is malformed, or asks for what cannot be had.
        RequestTooLargeError: too many images, or one that is too large.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    _check_utf8(body)
    sent = decode(body, _names_decoder)
    wire = decode(body, _body_decoder)
    if wire.n is not None and wire.n > 1:
        raise InvalidRequestError("n: one answer per request is all there is", code="unsupported_value", param="n")
    if isinstance(wire.response_format, JsonSchemaFormat):
        check_nesting(wire.response_format.json_schema.schema, "response_format.json_schema.schema")
    tools = read_tools(wire.tools or (), wire.functions or ())
    tool_choice = read_tool_choice(wire.tool_choice, wire.function_call, can_force=tools_supported)
    if tools_supported:
        check_tool_choice(tool_choice, tools)
    conversation = read_conversation(wire.messages, limits)
    stream = wire.stream or False
    return ChatRequest(
        model=wire.model,
        messages=conversation.messages,
        system=conversation.system,
        stream=stream,
        include_usage=bool(stream and wire.stream_options and wire.stream_options.include_usage),
        session=wire.session_id or wire.conversation_id or None,
        stop=(wire.stop,) if isinstance(wire.stop, str) else wire.stop or (),
        response_format=wire.response_format or TextFormat(),
        reasoning_effort=EFFORTS[wire.reasoning_effort] if wire.reasoning_effort else None,
        max_tokens=wire.max_completion_tokens or wire.max_tokens,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=wire.parallel_tool_calls is not False,
        sampling=msgspec.convert(wire, Sampling, from_attributes=True),
        ignored=_ignored(sent, _HONOURED | _TOOLS if tools_supported else _HONOURED),
        # Quotes inside a text are escaped in JSON, so no text that merely mentions the name is taken for the key.
        bypass_cache=b'"cache_control"' in body,
    )


def _check_utf8(body: bytes) -> None:
    """Refuse what is not UTF-8 even in fields that nothing else reads."""
    try:
        if not body.isascii():
            body.decode()
    except UnicodeDecodeError as error:
        problem = f"not valid UTF-8 (byte {error.start})"
        raise InvalidRequestError(problem, code="invalid_json") from error


def _ignored(sent: dict[str, Raw], honoured: frozenset[str]) -> tuple[str, ...]:
    names = (name for name, value in sent.items() if name not in honoured and bytes(value) != b"null")
    return tuple(_NOT_TOKEN.sub("_", name[:64]) or "_" for name in islice(names, MAX_IGNORED))
