"""Reckon the windows of a quota and judge a request by them: arithmetic on UTC dates, without a clock of its own."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ocp_trio.store.records import PERIODS, Allowance, Period, Quota, Refusal

__all__ = ["Window", "allowances", "refusal", "window_at", "windows_at"]


class Window(NamedTuple):
    """A span of time from ``start`` on, up to but without ``end``; both in UTC."""

    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """Its first day: what tells it from others of its period."""
        return self.start.date().isoformat()


def window_at(period: Period, now: datetime) -> Window:
    """Return the window that ``now``, an aware time, falls into."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "daily":
            return Window(day, day + timedelta(days=1))
        case "weekly":
            monday = day - timedelta(days=day.weekday())
            return Window(monday, monday + timedelta(days=7))
        case "monthly":
            first = day.replace(day=1)
            # 32 days after the first of a month is always in the next one.
            return Window(first, (first + timedelta(days=32)).replace(day=1))


def windows_at(now: datetime) -> dict[Period, Window]:
    """Return all windows that ``now`` falls into, the shortest period first."""
    return {period: window_at(period, now) for period in PERIODS}


def allowances(quota: Quota, used: Mapping[Period, int], now: datetime) -> dict[Period, Allowance]:
    """Return what has been used of each window, the shortest first."""
    return {
        period: Allowance(quota.limit(period), used[period], (window.end - now).total_seconds())
        for period, window in windows_at(now).items()
    }


def refusal(quota: Quota, used: Mapping[Period, int], now: datetime) -> Refusal | None:
    """Return why one more request is refused; None where it is within all limits."""
    spent = [
        Refusal(period, window.limit, window.used, window.resets_in)
        for period, window in allowances(quota, used, now).items()
        if window.limit is not None and window.used >= window.limit
    ]
    return max(spent, key=lambda each: each.resets_in, default=None)
