"""The lines of ``--output-format stream-json`` as types (CLI 2.1.332).

Fields have the CLI's own names. What nothing here reads is left out, and anything may be missing.
"""

from typing import Any

import msgspec

from ocp_trio.surrogates import scrub

__all__ = [
    "Abandoned",
    "ApiEvent",
    "ApiMessage",
    "ApiUsage",
    "Assistant",
    "Block",
    "Delta",
    "Line",
    "Other",
    "RateLimitEvent",
    "RateLimitInfo",
    "RateLimitWindow",
    "Result",
    "StreamEvent",
    "System",
    "User",
]

MAX_KIND = 64
"""Characters of a kind that are kept: it is shown in logs and errors, and any child can make one up."""


class ApiUsage(msgspec.Struct, frozen=True, gc=False):
    """The API's token counts; the total prompt is the sum of the three inputs."""

    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    output_tokens_details: dict[str, Any] | None = None


class Delta(msgspec.Struct, frozen=True, gc=False):
    """Of ``content_block_delta`` (``type`` tells which text counts) and of ``message_delta`` (``stop_reason``)."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class Block(msgspec.Struct, frozen=True, gc=False):
    """A content block: its start in a stream, or whole in an aggregate or a user line."""

    type: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}
    tool_use_id: str = ""
    text: str = ""
    thinking: str = ""
    is_error: bool | None = None


class ApiMessage(msgspec.Struct, frozen=True, gc=False):
    """Of ``message_start``, ``assistant`` and ``user``."""

    id: str = ""
    content: list[Block] | str = ""
    stop_reason: str | None = None
    usage: ApiUsage | None = None

    @property
    def blocks(self) -> list[Block]:
        """Its content, also where that is a plain text."""
        if isinstance(self.content, str):
            return [Block("text", text=self.content)] if self.content else []
        return self.content


class ApiEvent(msgspec.Struct, frozen=True, gc=False):
    """A raw event of the API's stream."""

    type: str = ""
    index: int = 0
    delta: Delta = Delta()
    content_block: Block = Block()
    message: ApiMessage = ApiMessage()
    usage: ApiUsage | None = None


class Abandoned(msgspec.Struct, frozen=True, gc=False):
    """The blocks of a cut message that are lost: from this index on."""

    from_block_index: int = 0


class RateLimitWindow(msgspec.Struct, frozen=True, gc=False):
    """One limit of a subscription; ``resetsAt`` is a Unix time in seconds, ``utilization`` a part of 1."""

    status: str | None = None
    utilization: float | None = None
    resetsAt: float | None = None  # noqa: N815 (the CLI's name)


class RateLimitInfo(msgspec.Struct, frozen=True, gc=False):
    """What a subscription's headers said: of the limit that counts, and of each."""

    status: str | None = None
    utilization: float | None = None
    resetsAt: float | None = None  # noqa: N815 (the CLI's names)
    rateLimitType: str | None = None  # noqa: N815
    isUsingOverage: bool | None = None  # noqa: N815
    unifiedWindows: dict[str, RateLimitWindow] | None = None  # noqa: N815


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line of output; one with a parent is a subagent's."""

    parent_tool_use_id: str | None = None

    @property
    def kind(self) -> str:
        """The most telling name of what it is."""
        return str(self.__struct_config__.tag)


class StreamEvent(Line, frozen=True, gc=False, tag="stream_event"):
    """An event of the API, as it came; ``abandoned_blocks`` stands where a message broke off."""

    event: ApiEvent = ApiEvent()
    abandoned_blocks: Abandoned | None = None

    @property
    def kind(self) -> str:
        """The event's."""
        return _neat(self.event.type)


class Assistant(Line, frozen=True, gc=False, tag="assistant"):
    """A finished block, a message that was not streamed, or an error in the CLI's own words."""

    message: ApiMessage = ApiMessage()
    is_api_error_message: bool = False
    error: str | None = None


class User(Line, frozen=True, gc=False, tag="user"):
    """Results of tools, or what the CLI itself tells the model."""

    message: ApiMessage = ApiMessage()
    isSynthetic: bool = False  # noqa: N815 (the CLI's name)


class System(Line, frozen=True, gc=False, tag="system"):
    """What the CLI does: init, status, api_retry, thinking_tokens ..."""

    subtype: str = ""
    status: str | None = None

    @property
    def kind(self) -> str:
        """The subtype."""
        return _neat(self.subtype)


class RateLimitEvent(Line, frozen=True, gc=False, tag="rate_limit_event"):
    """How much of a subscription is left."""

    rate_limit_info: RateLimitInfo = RateLimitInfo()


class Result(Line, frozen=True, gc=False, tag="result"):
    """The end of a turn; ``is_error`` decides, never ``subtype``."""

    subtype: str = ""
    is_error: bool = False
    num_turns: int = 1
    result: str = ""
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error: str | None = None
    api_error_status: int | None = None
    usage: ApiUsage | None = None
    # Of no use to the answer: whatever stands there must not cost the line.
    total_cost_usd: Any = None
    model_usage_since_last_result: Any = None

    @property
    def cost_usd(self) -> float | None:
        """What the turn cost; the total alone is that of all turns of the process."""
        if not isinstance(self.model_usage_since_last_result, dict):
            return _number(self.total_cost_usd)
        models = self.model_usage_since_last_result.values()
        costs = [_number(model.get("costUSD")) for model in models if isinstance(model, dict)]
        return sum(cost for cost in costs if cost is not None)


class Other(Line, frozen=True, gc=False, tag="other"):
    """Any other type of line: a sign of life."""

    name: str = ""

    @property
    def kind(self) -> str:
        """The line's type."""
        return _neat(self.name)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _neat(kind: str) -> str:
    return scrub(kind[:MAX_KIND])
