"""The parameters of a chat completion request, as they stand in its JSON."""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw

from ocp_trio.completion import Sampling
from ocp_trio.openai.messages import WireMessage
from ocp_trio.openai.tools import FunctionDefinition, FunctionName, WireTool, WireToolChoice

__all__ = [
    "ChatBody",
    "JsonObjectFormat",
    "JsonSchema",
    "JsonSchemaFormat",
    "ResponseFormat",
    "StreamOptions",
    "TextFormat",
]

ShortText: TypeAlias = Annotated[str, Meta(max_length=256)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256)]
StopText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1000)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Object: TypeAlias = dict[str, Raw]


class TextFormat(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Any text will do."""


class JsonObjectFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_object"):
    """The answer has to be a JSON object."""


class JsonSchema(msgspec.Struct, frozen=True):
    """A named JSON Schema."""

    name: str
    schema: dict[str, Any] = {}
    strict: bool | None = None
    description: str | None = None


class JsonSchemaFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_schema"):
    """The answer has to be JSON that the schema describes."""

    json_schema: JsonSchema


ResponseFormat: TypeAlias = TextFormat | JsonObjectFormat | JsonSchemaFormat


class StreamOptions(msgspec.Struct, frozen=True):
    """Options of a stream."""

    include_usage: bool | None = None


class UnreadParameters(Sampling, frozen=True, kw_only=True):
    """Parameters whose types are checked, and which shape at most what some models draw."""

    seed: Int64 | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    store: bool | None = None
    metadata: Object | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    modalities: tuple[str, ...] | None = None
    prediction: Object | None = None
    audio: Object | None = None
    web_search_options: Object | None = None


class ChatBody(UnreadParameters, frozen=True, kw_only=True):
    """The body, as it stands in the request."""

    model: Annotated[Name, Meta(examples=["claude-sonnet-4-6"])]
    messages: Annotated[tuple[WireMessage, ...], Meta(min_length=1, examples=[[{"role": "user", "content": "Hello"}]])]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Count | None = None
    stop: StopText | Annotated[tuple[StopText, ...], Meta(min_length=1, max_length=4)] | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    tools: tuple[WireTool, ...] | None = None
    tool_choice: WireToolChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: tuple[FunctionDefinition, ...] | None = None
    function_call: Literal["none", "auto"] | FunctionName | None = None
    session_id: ShortText | None = None
    conversation_id: ShortText | None = None
