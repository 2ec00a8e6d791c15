"""Say what an error that the CLI reports means to a client."""

import re
import time
from collections.abc import Callable
from typing import NamedTuple

from ocp_trio.claude.lines import Result
from ocp_trio.completion import FinishReason
from ocp_trio.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
    UsageLimitError,
)

__all__ = ["classify", "finish_reason", "is_notice"]

USAGE_LIMIT_RETRY = 3600.0
"""Seconds until a retry may help when a spent limit names no time: the shortest window of a subscription is hours."""

_LOGIN = re.compile(r"not logged in|/login\b|invalid (api key|bearer token)|oauth token", re.IGNORECASE)
_USAGE_LIMIT = re.compile(r"usage limit reached|hit your .{0,40}limit|credit balance is too low", re.IGNORECASE)
_TOO_LONG = re.compile(r"prompt is too long", re.IGNORECASE)
_NEVER = re.compile(r"(?!)")
_EPOCH = re.compile(r"\|(\d{9,11})\b")

_FINISH_REASONS: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}


def finish_reason(stop_reason: str | None) -> FinishReason:
    """Translate the API's stop reason."""
    return _FINISH_REASONS.get(stop_reason or "", "stop")


def is_notice(text: str) -> bool:
    """Whether an answer's text is one that the CLI prints in place of an answer."""
    return len(text) < 300 and bool(_LOGIN.search(text) or _USAGE_LIMIT.search(text))


class _Rule(NamedTuple):
    """Any one of these signs means the error that ``make`` makes; the first rule that fits decides."""

    make: Callable[[str], OcpError]
    message: str
    words: frozenset[str]
    """Of the ``error``, ``api_error``, ``terminal_reason`` or ``subtype`` fields."""
    statuses: frozenset[int]
    text: re.Pattern[str] = _NEVER


def _invalid(message: str) -> OcpError:
    return InvalidRequestError(message, code="unsupported_value")


_RULES = (
    _Rule(
        UsageLimitError,
        "the subscription's usage limit is reached",
        frozenset({"usage_limit_reached", "billing_error"}),
        frozenset({402}),
        _USAGE_LIMIT,
    ),
    _Rule(
        UpstreamAuthError,
        "the claude CLI is not logged in, or its credential was refused: run `claude /login`",
        frozenset({"authentication_failed"}),
        frozenset({401, 403}),
        _LOGIN,
    ),
    _Rule(
        ContextLengthError,
        "the prompt is too long for the model's context window",
        frozenset({"prompt_too_long", "blocking_limit"}),
        frozenset(),
        _TOO_LONG,
    ),
    _Rule(ModelNotFoundError, "upstream does not know this model", frozenset({"model_not_found"}), frozenset({404})),
    _Rule(UpstreamOverloadedError, "upstream is overloaded", frozenset({"overloaded"}), frozenset({529})),
    _Rule(UpstreamRateLimitError, "upstream limits the rate of requests", frozenset({"rate_limit"}), frozenset({429})),
    _Rule(_invalid, "upstream refused the request as invalid", frozenset({"invalid_request"}), frozenset({400, 413})),
)


def classify(line: Result, error: str | None, resets_at: float | None) -> OcpError:
    """Turn a ``result`` with ``is_error`` into the exception that it means.

    Nothing of the CLI's own text is passed on: it may name paths of the machine.

    Args:
        line: The result.
        error: The ``error`` of the synthetic assistant line before it, such as ``authentication_failed``.
        resets_at: Unix time at which a spent limit resets, where a ``rate_limit_event`` told.
    """
    words = {error, line.api_error, line.terminal_reason, line.subtype}
    for rule in _RULES:
        if words & rule.words or line.api_error_status in rule.statuses or rule.text.search(line.result):
            found = rule.make(rule.message)
            if isinstance(found, UsageLimitError):
                found.retry_after = _seconds_until_reset(line.result, resets_at)
            return found
    status = f" with status {line.api_error_status}" if line.api_error_status else ""
    return UpstreamError(f"upstream failed{status}")


def _seconds_until_reset(text: str, resets_at: float | None) -> float:
    if epoch := _EPOCH.search(text):
        resets_at = float(epoch[1])
    return USAGE_LIMIT_RETRY if resets_at is None else max(1.0, resets_at - time.time())
