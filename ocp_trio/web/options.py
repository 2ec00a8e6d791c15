"""What a request may ask for by headers of its own, over what the settings say."""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from werkzeug.datastructures import Headers

from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.decoding import refusal
from ocp_trio.settings import Settings

__all__ = ["OptionHeaders", "Options", "read_options"]

SHORTEST = 100
"""Milliseconds of the shortest heartbeat that a client may choose."""

Milliseconds = Annotated[int, Meta(ge=0, le=600_000, description="Milliseconds, 100 at least; 0 for none.")]


class OptionHeaders(
    msgspec.Struct,
    frozen=True,
    rename={
        "heartbeat": "x-ocp-heartbeat",
        "heartbeat_format": "x-ocp-heartbeat-format",
        "reasoning": "x-ocp-reasoning",
    },
):
    """The headers as they are sent."""

    heartbeat: Milliseconds | UnsetType = UNSET
    heartbeat_format: Literal["comment", "comment-line", "empty-delta"] | UnsetType = UNSET
    reasoning: Literal["0", "1"] | UnsetType = UNSET


@dataclass(frozen=True, kw_only=True)
class Options:
    """How one answer is told.

    Attributes:
        heartbeat_interval: Seconds of silence before a stream says that it is alive; infinite for never.
        heartbeat_format: What that looks like.
        keepalive_interval: The same for an answer that is no stream.
        reasoning: Whether the model's reasoning is told.
    """

    heartbeat_interval: float
    heartbeat_format: str
    keepalive_interval: float
    reasoning: bool


def read_options(headers: Headers, settings: Settings) -> Options:
    """Read the headers, checked whether or not the request is for a stream; settings stand in for those not sent.

    The heartbeat's are about streams only. Beating in a plain answer turns errors into status 200, so a client that
    sends its headers with every request must not switch it on unawares: ``CLAUDE_NONSTREAM_KEEPALIVE`` alone does.

    Raises:
        InvalidRequestError: a header makes no sense; the message names it.
    """
    sent = _read(headers)
    interval = settings.heartbeat_interval
    if sent.heartbeat is not UNSET:
        if 0 < sent.heartbeat < SHORTEST:
            problem = f"x-ocp-heartbeat: 0 or at least {SHORTEST} milliseconds"
            raise InvalidRequestError(problem, code="unsupported_value", param="x-ocp-heartbeat")
        interval = sent.heartbeat / 1000 or inf
    return Options(
        heartbeat_interval=interval,
        heartbeat_format=sent.heartbeat_format or settings.heartbeat_format,
        keepalive_interval=settings.nonstream_keepalive,
        reasoning=settings.reasoning_content if sent.reasoning is UNSET else sent.reasoning == "1",
    )


def _read(headers: Headers) -> OptionHeaders:
    names = OptionHeaders.__struct_encode_fields__
    # Two headers of one name are joined, as HTTP has it, and so make no sense.
    sent = {name: ", ".join(values).strip() for name in names if (values := headers.getlist(name))}
    try:
        return msgspec.convert(sent, OptionHeaders, strict=False)
    except msgspec.ValidationError as error:
        raise refusal(error) from error
