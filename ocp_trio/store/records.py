"""What the store keeps and what it tells: keys, quotas, usage and their reports."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias

from ocp_trio.errors import InvalidRequestError

__all__ = [
    "MAX_COUNT",
    "PERIODS",
    "Allowance",
    "ApiKey",
    "CacheStats",
    "Charge",
    "NewKey",
    "Period",
    "Quota",
    "Refusal",
    "UsageRow",
    "Verdict",
]

Period: TypeAlias = Literal["daily", "weekly", "monthly"]
PERIODS: Final[tuple[Period, ...]] = ("daily", "weekly", "monthly")
"""The three windows of a quota, the shortest first."""

MAX_COUNT: Final = 2**53
"""The largest number that all parts count exactly: Redis' scripts reckon in doubles."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Requests that a key may make in each window; None is no limit, 0 is none at all.

    Raises:
        InvalidRequestError: a limit is no whole number from 0 to 2**53.
    """

    daily: int | None = None
    """A calendar day in UTC."""
    weekly: int | None = None
    """An ISO week in UTC: from Monday on."""
    monthly: int | None = None
    """A calendar month in UTC."""

    def __post_init__(self) -> None:
        """Refuse what is no limit."""
        for period in PERIODS:
            limit = self.limit(period)
            # True is an int as well.
            if limit is not None and (type(limit) is not int or not 0 <= limit <= MAX_COUNT):
                raise InvalidRequestError(
                    f"{period} must be a whole number from 0 to {MAX_COUNT}, or null", param=period
                )

    def limit(self, period: Period) -> int | None:
        """Return the limit of one window."""
        match period:
            case "daily":
                return self.daily
            case "weekly":
                return self.weekly
            case "monthly":
                return self.monthly


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key; the secret itself is not."""

    id: str
    preview: str
    """Enough of the secret to tell it from others: its first and last characters."""
    name: str
    """Any text; unique among the keys that are not revoked."""
    created_at: datetime
    revoked: bool
    quota: Quota


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at its creation: the only time that its secret is known."""

    key: ApiKey
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Charge:
    """One request that has been counted, in the windows that were open then; `refund` takes it back."""

    key_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request over a quota; of several spent windows the one that is closed for the longest time."""

    period: Period
    limit: int
    used: int
    resets_in: float
    """Seconds until the window ends."""


Verdict: TypeAlias = Charge | Refusal


@dataclass(frozen=True, slots=True)
class Allowance:
    """One window of a key's quota."""

    limit: int | None
    used: int
    resets_in: float
    """Seconds until the window ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One request, however it ended. Times are in milliseconds, except where they are a date."""

    request_id: str
    created_at: datetime
    """When it ended, to the millisecond. Two rows with the same time and request id are one."""
    key_id: str | None = None
    """None where no key was asked for."""
    key_name: str | None = None
    model: str
    backend: str
    outcome: str
    """``ok``, ``cancelled``, or the code of its error."""
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    """Tokens that upstream read from its cache."""
    cache_write: int = 0
    """Tokens that upstream wrote to its cache."""
    cost_usd: float | None = None
    """As the backend reports it; None where it reports none."""
    queue_wait_ms: int = 0
    first_delta_ms: int | None = None
    """None where nothing visible came."""
    total_ms: int = 0
    heartbeats: int = 0
    prompt_chars: int = 0
    response_chars: int = 0


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What the cache holds now, and how often it was of use since it was last cleared."""

    entries: int
    hits: int
    size_bytes: int
