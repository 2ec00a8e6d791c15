"""Every way a completion can fail, split by whose fault it is.

::

    OcpError
    ├── ClientError                   the caller has to change something
    │   ├── InvalidRequestError       code, param
    │   │   ├── ContextLengthError
    │   │   ├── ModelNotFoundError
    │   │   ├── NotFoundError
    │   │   ├── MethodNotAllowedError allow
    │   │   └── RequestTooLargeError  limit
    │   ├── RequestTimeoutError       the body did not arrive in time
    │   ├── InvalidApiKeyError
    │   ├── PermissionDeniedError
    │   ├── RequestCancelledError     its owner or the administrator has ended it
    │   ├── QueueFullError            retry_after
    │   └── QuotaExceededError        retry_after
    ├── OperatorError                 whoever runs the server has to change something
    │   ├── SettingError              name, value
    │   ├── BackendUnavailableError
    │   │   └── ChildSpawnError
    │   ├── UpstreamAuthError
    │   ├── StoreUnavailableError
    │   ├── ShuttingDownError
    │   └── InternalError
    └── UpstreamError                 the model's side failed
        ├── UpstreamIncompleteError
        ├── LineTooLongError          limit
        ├── UpstreamOverloadedError   retry_after
        ├── UpstreamRateLimitError    retry_after
        ├── UsageLimitError           retry_after
        ├── TotalTimeoutError         seconds
        └── UpstreamStalledError      facts

Messages are safe to show to a client: no path, no child's output, no key. ``openai.errors`` chooses HTTP status and
error object for each class, in one table.
"""

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "BackendUnavailableError",
    "ChildSpawnError",
    "ClientError",
    "ContextLengthError",
    "InternalError",
    "InvalidApiKeyError",
    "InvalidRequestError",
    "LineTooLongError",
    "MethodNotAllowedError",
    "ModelNotFoundError",
    "NotFoundError",
    "OcpError",
    "OperatorError",
    "PermissionDeniedError",
    "QueueFullError",
    "QuotaExceededError",
    "RequestCancelledError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "SettingError",
    "ShuttingDownError",
    "StallFacts",
    "StoreUnavailableError",
    "TotalTimeoutError",
    "UpstreamAuthError",
    "UpstreamError",
    "UpstreamIncompleteError",
    "UpstreamOverloadedError",
    "UpstreamRateLimitError",
    "UpstreamStalledError",
    "UsageLimitError",
]


class OcpError(Exception):
    """Base of all; ``retry_after`` is in seconds, None where the cause names no time."""

    retry_after: float | None = None


class ClientError(OcpError):
    """The request cannot be served as it is."""


class InvalidRequestError(ClientError):
    """The request is malformed; ``code`` and ``param`` are those of OpenAI's error object."""

    def __init__(self, message: str, *, code: str = "invalid_type", param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class ContextLengthError(InvalidRequestError):
    """The prompt does not fit into the model's context window."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="context_length_exceeded", param="messages")


class ModelNotFoundError(InvalidRequestError):
    """No backend serves the model."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="model_not_found", param="model")


class NotFoundError(InvalidRequestError):
    """Nothing lives at this path."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="not_found")


class MethodNotAllowedError(InvalidRequestError):
    """The path exists, the method does not; ``allow`` lists those that do."""

    def __init__(self, message: str, *, allow: str) -> None:
        super().__init__(message, code="method_not_allowed")
        self.allow = allow


class RequestTooLargeError(InvalidRequestError):
    """The body, or a part of it, is over a limit."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message, code="request_too_large", param=param)


class RequestTimeoutError(ClientError):
    """The body did not arrive in time."""


class InvalidApiKeyError(ClientError):
    """The key is missing, wrong, or two different ones were sent."""


class PermissionDeniedError(ClientError):
    """The caller may not do this."""


class RequestCancelledError(ClientError):
    """The request was ended by its id."""


class QueueFullError(ClientError):
    """All slots are taken and the queue is full."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceededError(ClientError):
    """The key's own quota is spent; ``quota`` tells period, limit, use, and the seconds until it begins anew."""

    def __init__(self, message: str, *, retry_after: float, quota: dict[str, int | str] | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.quota = quota


class OperatorError(OcpError):
    """The server is not able to serve; its operator can change that."""


class SettingError(OperatorError):
    """A setting does not parse; the message names it and its value."""

    def __init__(self, name: str, value: object, problem: str) -> None:
        super().__init__(f"{name}={value!r}: {problem}")
        self.name = name
        self.value = value


class BackendUnavailableError(OperatorError):
    """No backend can serve this model now."""


class ChildSpawnError(BackendUnavailableError):
    """The backend's program could not be started."""


class UpstreamAuthError(OperatorError):
    """The CLI is not logged in, or upstream refused its credential."""


class StoreUnavailableError(OperatorError):
    """Keys, quotas, usage and cache cannot be reached now."""


class ShuttingDownError(OperatorError):
    """The server is stopping."""


class InternalError(OperatorError):
    """A defect of ours; the log has the details."""


class UpstreamError(OcpError):
    """Upstream failed, or answered something that cannot be passed on."""


class UpstreamIncompleteError(UpstreamError):
    """Upstream ended without saying how its answer ended."""


class LineTooLongError(UpstreamError):
    """Upstream sent a line beyond the bound."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"upstream sent a line longer than {limit} bytes")
        self.limit = limit


class UpstreamOverloadedError(UpstreamError):
    """Upstream has no capacity now."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UpstreamRateLimitError(UpstreamError):
    """Upstream asks to slow down."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UsageLimitError(UpstreamError):
    """The subscription's limit is reached, or its account cannot pay."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TotalTimeoutError(UpstreamError):
    """The whole request took longer than its total limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no complete answer within the total limit of {seconds:g} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class StallFacts:
    """What a stall verdict rests on; times in seconds of the monotonic clock."""

    phase: Literal["creation", "first_event", "idle", "keepalive_only"]
    """What was being waited for."""
    limit: float
    """The limit that was reached."""
    since_last_byte: float
    """Seconds since anything came off the wire, or since the beginning."""
    since_last_event: float
    """Seconds since the last parsed event, or since the beginning."""
    last_event: str | None
    """Kind of the last event; None if there was none."""
    events: int
    """Events seen so far."""
    bytes: int
    """Bytes seen so far; 0 over sources that carry none."""
    visible_output: bool
    """Whether anything that a client sees had been produced."""
    setting: str
    """The setting that raises the limit."""
    inside_tool_call: bool = False
    """Whether a tool call had been begun and not ended."""


class UpstreamStalledError(UpstreamError):
    """Upstream was silent for longer than a limit: a timeout, everywhere it is classified."""

    def __init__(self, facts: StallFacts) -> None:
        half = " inside a half-sent tool call" if facts.inside_tool_call else ""
        super().__init__(
            f"upstream was silent for {facts.limit:g} s{half} ({facts.phase}: last event {facts.last_event or 'none'} "
            f"{facts.since_last_event:g} s ago, {facts.events} events so far); {facts.setting} raises this limit"
        )
        self.facts = facts
