"""Turn rows of usage into plain values and back, such that no row is lost for a value that a store cannot hold."""

from collections.abc import Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, Final, TypeAlias

from ocp_trio.store.records import MAX_COUNT, UsageRow

__all__ = [
    "COLUMNS",
    "HOUR_MS",
    "Values",
    "from_milliseconds",
    "from_values",
    "milliseconds",
    "recent_limit",
    "to_values",
]

HOUR_MS: Final = 3_600_000
"""Milliseconds of an hour."""
MAX_TEXT: Final = 500
"""Characters of a text in a row; a model's name is the longest, and its caller chooses it."""

MAX_RECENT: Final = 10_000
"""Rows of a report."""

COLUMNS: Final = tuple(each.name for each in fields(UsageRow))
"""What a row consists of, in order."""

Values: TypeAlias = tuple[Any, ...]
"""A row as numbers, texts and None, in the order of `COLUMNS`; its time is in milliseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TIME = COLUMNS.index("created_at")


def milliseconds(when: datetime) -> int:
    """Return a time in whole milliseconds since 1970."""
    return (when - _EPOCH) // _MILLISECOND


def from_milliseconds(count: int) -> datetime:
    """Return the time, in UTC, that `milliseconds` was given, to the millisecond."""
    return _EPOCH + count * _MILLISECOND


def to_values(row: UsageRow) -> Values:
    """Return a row's values, each brought into the range that both stores hold."""
    return tuple(map(_tidy, astuple(row)))


def from_values(values: Sequence[Any]) -> UsageRow:
    """Return the row that was stored as ``values``."""
    # A newer version may have written more, an older one less: the rest has its defaults.
    named = dict(zip(COLUMNS, values, strict=False))
    return UsageRow(**named | {"created_at": from_milliseconds(values[_TIME])})


def recent_limit(limit: int) -> int:
    """Return how many rows a report holds at most."""
    return min(max(limit, 0), MAX_RECENT)


def _tidy(value: str | float | datetime | None) -> str | float | None:
    match value:
        case datetime():
            return milliseconds(value)
        case str():
            return value[:MAX_TEXT].encode("utf-8", "replace").decode()
        case int():
            return min(max(value, 0), MAX_COUNT)
        case float():
            return value if isfinite(value) else None
        case None:
            return None
