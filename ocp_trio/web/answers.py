"""The JSON objects that operating endpoints answer with, in the shapes that users of the Node proxy know."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from ocp_trio.store.records import Period

__all__ = [
    "CacheCleared",
    "CacheState",
    "Cancelled",
    "CreatedKey",
    "KeyList",
    "KeyQuota",
    "KeyRevoked",
    "Limits",
    "ListedKey",
    "LogEntry",
    "Logs",
    "ModelList",
    "ModelObject",
    "PeriodQuota",
    "QuotaSet",
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
