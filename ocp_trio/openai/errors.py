"""Choose the HTTP status and OpenAI's error object for each error, in one table."""

import math

import msgspec
from msgspec import UNSET, UnsetType

from ocp_trio import errors
from ocp_trio.errors import InvalidApiKeyError, InvalidRequestError, MethodNotAllowedError, OcpError, QuotaExceededError

__all__ = [
    "DEFAULT_RETRY_AFTER",
    "ErrorBody",
    "ErrorObject",
    "ErrorResponse",
    "encode_error",
    "error_object",
    "error_response",
]

DEFAULT_RETRY_AFTER = 5.0
"""Seconds after which a caller may try again, where the cause names no time."""

MAX_RETRY_AFTER = 7 * 86400.0
"""Seconds of the longest wait that is announced: subscriptions' limits are weekly at most."""


class ErrorObject(msgspec.Struct, frozen=True):
    """OpenAI's error object; all four keys are always there."""

    message: str
    type: str
    param: str | None
    code: str | None
    quota: dict[str, int | str] | UnsetType = UNSET
    """Of a spent quota: period, limit, used, resetsIn (seconds)."""


class ErrorBody(msgspec.Struct, frozen=True):
    """What a response or a frame holds that reports an error."""

    error: ErrorObject


class ErrorResponse(msgspec.Struct, frozen=True):
    """A whole response that reports an error."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Row(msgspec.Struct, frozen=True):
    """How a class of errors is reported; a ``code`` of None leaves it to the error itself."""

    status: int
    type: str
    code: str | None
    should_retry: bool = True


_TABLE: dict[type[OcpError], _Row] = {
    OcpError: _Row(500, "server_error", "internal_error"),
    errors.ClientError: _Row(400, "invalid_request_error", None),
    errors.InvalidRequestError: _Row(400, "invalid_request_error", None),
    errors.ContextLengthError: _Row(400, "invalid_request_error", "context_length_exceeded"),
    errors.ModelNotFoundError: _Row(404, "invalid_request_error", "model_not_found"),
    errors.NotFoundError: _Row(404, "invalid_request_error", "not_found"),
    errors.MethodNotAllowedError: _Row(405, "invalid_request_error", "method_not_allowed"),
    errors.RequestTooLargeError: _Row(413, "invalid_request_error", "request_too_large"),
    errors.RequestTimeoutError: _Row(408, "invalid_request_error", "request_timeout"),
    errors.InvalidApiKeyError: _Row(401, "invalid_request_error", "invalid_api_key"),
    errors.PermissionDeniedError: _Row(403, "permission_error", "insufficient_permissions"),
    # What gRPC's CANCELLED is over HTTP. No client takes it for a reason to try again.
    errors.RequestCancelledError: _Row(499, "cancelled_error", "cancelled", should_retry=False),
    errors.QueueFullError: _Row(429, "rate_limit_error", "rate_limit_exceeded"),
    errors.QuotaExceededError: _Row(429, "rate_limit_error", "insufficient_quota", should_retry=False),
    errors.OperatorError: _Row(500, "server_error", "internal_error"),
    errors.BackendUnavailableError: _Row(503, "server_error", "backend_unavailable"),
    errors.StoreUnavailableError: _Row(503, "server_error", "store_unavailable"),
    errors.UpstreamAuthError: _Row(401, "authentication_error", "upstream_auth", should_retry=False),
    errors.ShuttingDownError: _Row(503, "server_error", "shutting_down"),
    errors.UpstreamError: _Row(502, "server_error", "upstream_error"),
    errors.UpstreamIncompleteError: _Row(502, "server_error", "upstream_incomplete"),
    errors.UpstreamOverloadedError: _Row(503, "server_error", "overloaded"),
    errors.UpstreamRateLimitError: _Row(429, "rate_limit_error", "rate_limit_exceeded"),
    errors.UsageLimitError: _Row(429, "rate_limit_error", "insufficient_quota", should_retry=False),
    # A timed out prompt is not run a second time unasked: it would most likely end the same way, and it costs.
    errors.TotalTimeoutError: _Row(504, "timeout_error", "timeout", should_retry=False),
    errors.UpstreamStalledError: _Row(504, "timeout_error", "stalled", should_retry=False),
}


def encode_error(error: ErrorObject) -> bytes:
    """Encode the JSON text that holds the error object, as a body or as the data of a frame."""
    return msgspec.json.encode(ErrorBody(error))


def error_object(error: OcpError) -> ErrorObject:
    """Make the error object of ``error``, for a response's body or a stream's frame."""
    row = _row(error)
    code, param = row.code, None
    if isinstance(error, InvalidRequestError):
        code, param = row.code or error.code, error.param
    quota = (error.quota if isinstance(error, QuotaExceededError) else None) or UNSET
    return ErrorObject(str(error) or code or row.type, row.type, param, code, quota)


def error_response(error: OcpError) -> ErrorResponse:
    """Make the whole response that reports ``error``."""
    row = _row(error)
    headers = [("content-type", "application/json")]
    if row.status in {429, 503}:
        headers.append(("retry-after", str(_retry_after(error))))
    if not row.should_retry:
        headers.append(("x-should-retry", "false"))
    if isinstance(error, InvalidApiKeyError):
        headers.append(("www-authenticate", "Bearer"))
    if isinstance(error, MethodNotAllowedError):
        headers.append(("allow", error.allow))
    return ErrorResponse(row.status, tuple(headers), encode_error(error_object(error)))


def _row(error: OcpError) -> _Row:
    """Find the row of the error's class, or of its nearest base that has one."""
    return next(_TABLE[kind] for kind in type(error).__mro__ if kind in _TABLE)


def _retry_after(error: OcpError) -> int:
    """Return whole seconds, 1 at least, rounded up so that nobody comes back too early."""
    seconds = DEFAULT_RETRY_AFTER if error.retry_after is None else error.retry_after
    return math.ceil(min(max(seconds, 1.0), MAX_RETRY_AFTER))
