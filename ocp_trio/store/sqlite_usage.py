"""Keep usage in SQLite, and add it up there."""

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from ocp_trio.store.records import UsageRow
from ocp_trio.store.reports import Totals, UsageCell, UsageReport, report_of
from ocp_trio.store.rows import COLUMNS, HOUR_MS, from_milliseconds, from_values, milliseconds, recent_limit, to_values
from ocp_trio.store.sqlite_lanes import SqliteLanes

__all__ = ["SqliteUsage"]

# All that these statements are made of is constants.
_INSERT: Final = f"INSERT OR IGNORE INTO usage VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
_SPAN: Final = "created_at >= :since AND created_at < :until"
_OF_KEY: Final = "key_id = :key_id AND"
_RECENT: Final = "SELECT {columns} FROM usage WHERE {of_key} {span} ORDER BY created_at DESC, rowid DESC LIMIT :limit"
_CELLS: Final = "SELECT {hour}, key_name, model, {sums} FROM usage WHERE {of_key} {span} GROUP BY 1, 2, 3"

_SUMS: Final = {
    "requests": "count(*)",
    "successes": "sum(outcome = 'ok')",
    "cancelled": "sum(outcome = 'cancelled')",
    "tokens_in": "sum(tokens_in)",
    "tokens_out": "sum(tokens_out)",
    "cache_read": "sum(cache_read)",
    "cache_write": "sum(cache_write)",
    "costed": "count(cost_usd)",
    "cost_usd": "total(cost_usd)",
    "queue_wait_ms": "sum(queue_wait_ms)",
    "answered": "count(first_delta_ms)",
    "first_delta_ms": "coalesce(sum(first_delta_ms), 0)",
    "total_ms": "sum(total_ms)",
    "max_total_ms": "max(total_ms)",
    "heartbeats": "sum(heartbeats)",
    "prompt_chars": "sum(prompt_chars)",
    "response_chars": "sum(response_chars)",
    "first_request": "min(created_at)",
    "last_request": "max(created_at)",
}


class SqliteUsage:
    """One row per request; described by the protocol `Usage`.

    Args:
        lanes: The file.
        now: Tells the time.
        keep: How long rows are kept.
    """

    def __init__(self, lanes: SqliteLanes, now: Callable[[], datetime], keep: timedelta) -> None:
        self._lanes = lanes
        self._now = now
        self._keep = keep

    async def record(self, row: UsageRow) -> None:
        """Keep a row."""
        values = to_values(row)
        oldest = milliseconds(self._now() - self._keep)

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute(_INSERT, values)
            connection.execute("DELETE FROM usage WHERE created_at < ?", (oldest,))

        await self._lanes.write(insert)

    async def report(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        key_id: str | None = None,
    ) -> UsageReport:
        """Add up rows."""
        span = {
            "since": 0 if since is None else milliseconds(since),
            "until": 2**63 - 1 if until is None else milliseconds(until),
            "key_id": key_id,
            "limit": recent_limit(limit),
        }

        def look(connection: sqlite3.Connection) -> UsageReport:
            # One transaction: both queries see the same rows.
            connection.execute("BEGIN")
            cells = [_cell(row) for row in connection.execute(_statement(_CELLS, key_id), span)]
            recent = [from_values(row) for row in connection.execute(_statement(_RECENT, key_id), span)]
            connection.execute("COMMIT")
            return report_of(cells, recent)

        return await self._lanes.read(look)


def _statement(template: str, key_id: str | None) -> str:
    return template.format(
        columns=", ".join(COLUMNS),
        sums=", ".join(_SUMS.values()),
        hour=f"created_at / {HOUR_MS}",
        of_key="" if key_id is None else _OF_KEY,
        span=_SPAN,
    )


def _cell(row: tuple[Any, ...]) -> tuple[UsageCell, Totals]:
    hour, key_name, model, *sums = row
    named = dict(zip(_SUMS, sums, strict=True))
    times = {name: from_milliseconds(named[name]) for name in ("first_request", "last_request")}
    return UsageCell(hour, key_name, model), Totals(**named | times)
