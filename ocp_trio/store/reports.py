"""Add requests up: by key, by model, by hour, from the same cells, so that the sums always agree."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple

from ocp_trio.store.records import UsageRow
from ocp_trio.store.rows import HOUR_MS, from_milliseconds, milliseconds

__all__ = [
    "HourUsage",
    "KeyUsage",
    "ModelUsage",
    "SeriesPoint",
    "Totals",
    "UsageCell",
    "UsageReport",
    "add_row",
    "report_of",
]


@dataclass(slots=True)
class Totals:
    """Sums over some requests; times are in milliseconds."""

    requests: int = 0
    successes: int = 0
    cancelled: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cache_read: int = 0
    cache_write: int = 0
    costed: int = 0
    """Requests whose cost is known."""
    cost_usd: float = 0.0
    """Sum of those costs."""
    queue_wait_ms: int = 0
    answered: int = 0
    """Requests of which something visible came."""
    first_delta_ms: int = 0
    """Sum over those."""
    total_ms: int = 0
    max_total_ms: int = 0
    heartbeats: int = 0
    prompt_chars: int = 0
    response_chars: int = 0
    first_request: datetime | None = None
    last_request: datetime | None = None

    @property
    def errors(self) -> int:
        """Requests that neither succeeded nor were cancelled."""
        return self.requests - self.successes - self.cancelled

    @property
    def avg_total_ms(self) -> float:
        """Mean duration; 0 without requests."""
        return self.total_ms / self.requests if self.requests else 0.0

    @property
    def avg_first_delta_ms(self) -> float | None:
        """Mean time to the first delta, of those that had one."""
        return self.first_delta_ms / self.answered if self.answered else None

    def add(self, other: "Totals") -> None:
        """Count the requests of ``other`` as well."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.max_total_ms = max(self.max_total_ms, other.max_total_ms)
        if other.first_request and (self.first_request is None or other.first_request < self.first_request):
            self.first_request = other.first_request
        if other.last_request and (self.last_request is None or other.last_request > self.last_request):
            self.last_request = other.last_request


_SUMS = tuple(
    each.name for each in fields(Totals) if each.name not in {"max_total_ms", "first_request", "last_request"}
)


class UsageCell(NamedTuple):
    """The requests of one hour, key and model; the unit of which every report is made."""

    hour: int
    """Hours since 1970."""
    key_name: str | None
    model: str


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """All requests of one key's name; keys that succeed each other under one name are one."""

    key_name: str | None
    totals: Totals


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """All requests to one model."""

    model: str
    totals: Totals


@dataclass(frozen=True, slots=True)
class HourUsage:
    """All requests that ended within an hour."""

    hour: datetime
    totals: Totals


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """The requests of one hour, key and model, for a chart."""

    hour: datetime
    key_name: str | None
    model: str
    totals: Totals


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What was used in a span of time: the same requests, added up in four ways."""

    by_key: list[KeyUsage]
    """The most requests first."""
    by_model: list[ModelUsage]
    """The most requests first."""
    timeline: list[HourUsage]
    """The earliest hour first; hours without requests are left out."""
    series: list[SeriesPoint]
    """The timeline by key and model."""
    recent: list[UsageRow]
    """The newest first."""


def totals_of(row: UsageRow) -> Totals:
    """Return the sums over one request."""
    return Totals(
        requests=1,
        successes=int(row.outcome == "ok"),
        cancelled=int(row.outcome == "cancelled"),
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        cache_read=row.cache_read,
        cache_write=row.cache_write,
        costed=int(row.cost_usd is not None),
        cost_usd=row.cost_usd or 0.0,
        queue_wait_ms=row.queue_wait_ms,
        answered=int(row.first_delta_ms is not None),
        first_delta_ms=row.first_delta_ms or 0,
        total_ms=row.total_ms,
        max_total_ms=row.total_ms,
        heartbeats=row.heartbeats,
        prompt_chars=row.prompt_chars,
        response_chars=row.response_chars,
        first_request=row.created_at,
        last_request=row.created_at,
    )


def add_row(cells: dict[UsageCell, Totals], row: UsageRow) -> None:
    """Count one request in its cell."""
    cell = UsageCell(milliseconds(row.created_at) // HOUR_MS, row.key_name, row.model)
    cells.setdefault(cell, Totals()).add(totals_of(row))


def report_of(cells: Iterable[tuple[UsageCell, Totals]], recent: list[UsageRow]) -> UsageReport:
    """Make the report of some cells."""
    keys: dict[str | None, Totals] = {}
    models: dict[str, Totals] = {}
    hours: dict[int, Totals] = {}
    series = []
    for cell, totals in sorted(cells, key=lambda each: (each[0].hour, each[0].key_name or "", each[0].model)):
        keys.setdefault(cell.key_name, Totals()).add(totals)
        models.setdefault(cell.model, Totals()).add(totals)
        hours.setdefault(cell.hour, Totals()).add(totals)
        hour = from_milliseconds(cell.hour * HOUR_MS)
        series.append(SeriesPoint(hour, cell.key_name, cell.model, totals))
    by_key = [KeyUsage(name, totals) for name, totals in keys.items()]
    by_model = [ModelUsage(model, totals) for model, totals in models.items()]
    by_key.sort(key=lambda each: (-each.totals.requests, each.key_name or ""))
    by_model.sort(key=lambda each: (-each.totals.requests, each.model))
    timeline = [HourUsage(from_milliseconds(hour * HOUR_MS), totals) for hour, totals in hours.items()]
    return UsageReport(by_key, by_model, timeline, series, recent)
