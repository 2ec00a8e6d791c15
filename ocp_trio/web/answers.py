"""The JSON objects that operating endpoints answer with, in the shapes that users of the Node proxy know."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from ocp_trio.store.records import Period

__all__ = [
    "CacheCleared",
    "CacheState",
    "Cancelled",
    "CreatedKey",
    "HourSums",
    "KeyList",
    "KeyQuota",
    "KeyRevoked",
    "KeySums",
    "Limits",
    "ListedKey",
    "LogEntry",
    "Logs",
    "ModelList",
    "ModelObject",
    "ModelSums",
    "PeriodQuota",
    "QuotaSet",
    "RequestRow",
    "Scope",
    "SeriesSums",
    "Sums",
    "UsageReport",
]

LogEntry: TypeAlias = dict[str, Any]


class ModelObject(TypedDict):
    """A model that is served; figures that are not known are left out."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    context_window: NotRequired[int]
    max_output_tokens: NotRequired[int]


class ModelList(TypedDict):
    """OpenAI's list of models."""

    object: Literal["list"]
    data: list[ModelObject]


class Cancelled(TypedDict):
    """A completion that was ended by its id; ``gone`` tells whether its child is already."""

    id: str
    cancelled: Literal[True]
    gone: bool


class Logs(TypedDict):
    """The newest log entries, the newest last."""

    count: int
    level: str
    entries: list[LogEntry]
    cursor: str
    missed: int


class CreatedKey(TypedDict):
    """A new key: the only time that its secret is told."""

    id: str
    key: str
    name: str


class ListedKey(TypedDict):
    """A key, without its secret."""

    id: str
    keyPreview: str
    name: str
    created_at: str
    revoked: bool
    quota_daily: int | None
    quota_weekly: int | None
    quota_monthly: int | None


class KeyList(TypedDict):
    """All keys, revoked ones included."""

    keys: list[ListedKey]


class KeyRevoked(TypedDict):
    """A key that is out of service."""

    revoked: Literal[True]
    idOrName: str


class Limits(TypedDict):
    """Requests that a key may make; null is no limit."""

    daily: int | None
    weekly: int | None
    monthly: int | None


class QuotaSet(TypedDict):
    """The quota that a key has now."""

    ok: Literal[True]
    idOrName: str
    quota: Limits


class PeriodQuota(TypedDict):
    """Limit and use in the present day, week or month."""

    limit: int | None
    used: int


class KeyQuota(TypedDict):
    """Limits and use of a key."""

    keyId: str
    quota: dict[Period, PeriodQuota]


class CacheState(TypedDict):
    """What the cache holds."""

    entries: int
    totalHits: int
    sizeBytes: int
    inflight: int


class CacheCleared(TypedDict):
    """How many answers were dropped."""

    cleared: int


class Sums(TypedDict):
    """What some requests add up to; times are in milliseconds."""

    requests: int
    successes: int
    errors: int
    cancelled: int
    total_prompt_chars: int
    total_response_chars: int
    total_elapsed_ms: int
    avg_elapsed_ms: int
    avg_first_delta_ms: float | None
    tokens_in: int
    tokens_out: int
    cache_read: int
    cache_write: int
    cost_usd: float | None
    queue_wait_ms: int
    heartbeats: int
    first_request: str | None
    last_request: str | None


class KeySums(Sums):
    """Those of one key."""

    key_name: str | None


class ModelSums(Sums):
    """Those for one model."""

    model: str


class HourSums(Sums):
    """Those of one hour."""

    hour: str


class SeriesSums(TypedDict):
    """What the requests of one hour, key and model add up to."""

    hour: str
    key_name: str | None
    model: str
    requests: int
    tokens_in: int
    tokens_out: int
    cache_read: int
    cache_write: int


class RequestRow(TypedDict):
    """One request, however it ended."""

    request_id: str
    created_at: str
    key_id: str | None
    key_name: str | None
    model: str
    backend: str
    outcome: str
    success: bool
    tokens_in: int
    tokens_out: int
    cache_read: int
    cache_write: int
    cost_usd: float | None
    queue_wait_ms: int
    first_delta_ms: int | None
    elapsed_ms: int
    heartbeats: int
    prompt_chars: int
    response_chars: int


class Scope(TypedDict):
    """Who asked, and whether for everybody."""

    self: str | None
    all: bool


class UsageReport(TypedDict):
    """Usage by key, model and hour, and the newest requests."""

    byKey: list[KeySums]
    byModel: list[ModelSums]
    timeline: list[HourSums]
    series: NotRequired[list[SeriesSums]]
    recent: list[RequestRow]
    scope: Scope
