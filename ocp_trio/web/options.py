"""What a request may ask for by headers of its own, over what the settings say."""

from dataclasses import dataclass
from math import inf

from werkzeug.datastructures import Headers

from ocp_trio.errors import InvalidRequestError
from ocp_trio.settings import HEARTBEAT_FORMATS, Settings
from ocp_trio.web.guards import whole_number

__all__ = ["Options", "read_options"]

HEARTBEAT = "x-ocp-heartbeat"
HEARTBEAT_FORMAT = "x-ocp-heartbeat-format"
REASONING = "x-ocp-reasoning"

SHORTEST, LONGEST = 100, 600_000
"""Milliseconds between which a client may choose its heartbeat."""


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
    interval, beat = settings.heartbeat_interval, settings.heartbeat_format
    if (text := _sent(headers, HEARTBEAT)) is not None:
        milliseconds = whole_number(HEARTBEAT, text, 0, LONGEST)
        if 0 < milliseconds < SHORTEST:
            raise _refuse(HEARTBEAT, f"0 or a whole number from {SHORTEST} to {LONGEST}")
        interval = milliseconds / 1000 or inf
    if (text := _sent(headers, HEARTBEAT_FORMAT)) is not None:
        if text not in HEARTBEAT_FORMATS:
            raise _refuse(HEARTBEAT_FORMAT, f"one of {', '.join(HEARTBEAT_FORMATS)}")
        beat = text
    reasoning = _sent(headers, REASONING)
    if reasoning not in {None, "0", "1"}:
        raise _refuse(REASONING, "0 or 1")
    return Options(
        heartbeat_interval=interval,
        heartbeat_format=beat,
        keepalive_interval=settings.nonstream_keepalive,
        reasoning=settings.reasoning_content if reasoning is None else reasoning == "1",
    )


def _sent(headers: Headers, name: str) -> str | None:
    """Return what was sent under a name; two of it are joined, and so make no sense."""
    values = headers.getlist(name)
    return ", ".join(values).strip() if values else None


def _refuse(name: str, expected: str) -> InvalidRequestError:
    return InvalidRequestError(f"{name} has to be {expected}", code="unsupported_value", param=name)
