"""Say what an error that the provider reports means to a client; nothing of its own pages and texts passes."""

import math
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import msgspec

from ocp_trio.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    RequestTooLargeError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
    UsageLimitError,
)

__all__ = ["Report", "classify", "parse_report", "retry_after"]

USAGE_LIMIT_RETRY = 3600.0
"""Seconds until a retry may help when a spent limit names no time: the shortest window of a subscription is hours."""
MAX_QUOTED = 500
"""Characters of a refusal's text that are passed on."""

_SPENT = re.compile(r"usage limit|insufficient (balance|quota|credits?)|(quota|limit) exceeded for", re.IGNORECASE)
_TOO_LONG = re.compile(r"prompt is too long|(context|input|prompt)[ _](length|window)|maximum context", re.IGNORECASE)
_NEVER = re.compile(r"(?!)")
_BLANK = re.compile(r"[\x00-\x20\x7f]+")


class Report(NamedTuple):
    """What an error object says: its types and codes, in lower case, and its message."""

    words: frozenset[str] = frozenset()
    message: str = ""


class _Rule(NamedTuple):
    """Any one of these signs means the error that ``make`` makes."""

    make: Callable[[str], OcpError]
    message: str
    words: frozenset[str]
    statuses: frozenset[int]
    text: re.Pattern[str] = _NEVER


_RULES = (
    _Rule(
        UsageLimitError,
        "the usage limit of the OpenCode Go subscription is reached, or its account cannot pay",
        frozenset(
            {
                "creditserror",
                "gousagelimiterror",
                "subscriptionusagelimiterror",
                "monthlylimiterror",
                "userlimiterror",
                "freeusagelimiterror",
                "insufficient_quota",
                "insufficient_balance",
                "billing_error",
                "exceeded_current_quota_error",
            }
        ),
        frozenset({402}),
        _SPENT,
    ),
    _Rule(
        ContextLengthError,
        "the prompt is too long for the model's context window",
        frozenset({"context_length_exceeded"}),
        frozenset(),
        _TOO_LONG,
    ),
    _Rule(
        ModelNotFoundError,
        "upstream does not know this model",
        frozenset({"modelerror", "model_not_found", "not_found_error"}),
        frozenset({404}),
    ),
    _Rule(
        UpstreamOverloadedError,
        "upstream is overloaded",
        # The inspection of content by one of the provider's own providers fails now and then, on any prompt.
        frozenset({"data_inspection_failed", "overloaded_error", "overloaded", "engine_overloaded_error"}),
        frozenset({503, 529}),
    ),
    _Rule(
        UpstreamRateLimitError,
        "upstream limits the rate of requests",
        frozenset({"ratelimiterror", "rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error"}),
        frozenset({429}),
    ),
    _Rule(
        UpstreamAuthError,
        "OpenCode Go refused the key: check OPENCODE_API_KEY",
        frozenset({"autherror", "authentication_error", "invalid_api_key", "permission_error"}),
        frozenset({401}),
    ),
    _Rule(
        RequestTooLargeError,
        "the request is too large for upstream",
        frozenset({"request_too_large"}),
        frozenset({413}),
    ),
)


def parse_report(body: bytes | str) -> Report | None:
    """Read an error object, in whatever of the usual shapes; None if ``body`` holds none, such as an HTML page."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    inner = found.get("error", found)
    if isinstance(inner, str):
        return Report(message=inner)
    if not isinstance(inner, dict) or not inner.keys() & {"type", "code", "message"}:
        return None
    words = {str(inner[name]).lower() for name in ("type", "code", "status") if inner.get(name) is not None}
    return Report(frozenset(words), _text(inner.get("message")))


def _text(value: Any) -> str:  # noqa: ANN401 (whatever JSON holds there)
    return value if isinstance(value, str) else ""


def classify(
    report: Report | None, *, status: int | None = None, retry_after: float | None = None, secret: str = ""
) -> OcpError:
    """Turn an error of the provider into the exception that it means.

    Args:
        report: Its error object; None if it sent something else.
        status: Status of its response; None in the middle of a stream.
        retry_after: Seconds that it asks to wait.
        secret: What no message may hold, whatever the provider repeats.
    """
    said = report or Report()
    rule = next((rule for rule in _RULES if said.words & rule.words or rule.text.search(said.message)), None)
    if rule is None or (rule.make is ContextLengthError and status not in {None, 400, 413, 422}):
        rule = next((rule for rule in _RULES if status in rule.statuses), None)
    if rule is not None:
        error = rule.make(rule.message)
        if isinstance(error, UsageLimitError | UpstreamRateLimitError | UpstreamOverloadedError):
            error.retry_after = retry_after
        if isinstance(error, UsageLimitError) and retry_after is None:
            error.retry_after = USAGE_LIMIT_RETRY
        return error
    if status == 403 and report is not None:
        return UpstreamAuthError("OpenCode Go refused the key: check OPENCODE_API_KEY")
    if status in {400, 422}:
        return InvalidRequestError(_refusal(said.message, secret), code="unsupported_value")
    if status is None and "invalid_request_error" in said.words:
        return InvalidRequestError("upstream refused the request as invalid", code="unsupported_value")
    return UpstreamError(f"upstream failed with status {status}" if status else "upstream failed in mid-answer")


def _refusal(message: str, secret: str) -> str:
    quoted = _BLANK.sub(" ", message).strip()
    if secret:
        quoted = quoted.replace(secret, "…")
    if not quoted or "<html" in quoted.lower():
        return "upstream refused the request as invalid"
    return f"upstream refused the request: {quoted[:MAX_QUOTED]}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a response's headers ask to wait: ``retry-after-ms``, or seconds, or a date."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
