"""Keep usage in Redis, ordered by time, and add it up page by page."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec
from coredis.tokens import PureToken

from ocp_trio.store.records import UsageRow
from ocp_trio.store.redis_link import RedisLink, RedisScript
from ocp_trio.store.reports import Totals, UsageCell, UsageReport, add_row, report_of
from ocp_trio.store.rows import from_values, milliseconds, recent_limit, to_values

__all__ = ["RedisUsage"]

USAGE: Final = "ocp:usage"
"""A sorted set: rows, by their time in milliseconds."""
PAGE: Final = 200
"""Rows that are fetched at once: a few milliseconds of work between two waits."""

_RECORD = RedisScript(
    script="""
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[3])
"""
)


class RedisUsage:
    """One row per request; described by the protocol `Usage`.

    Args:
        link: The Redis.
        now: Tells the time.
        keep: How long rows are kept.
    """

    def __init__(self, link: RedisLink, now: Callable[[], datetime], keep: timedelta) -> None:
        self._link = link
        self._now = now
        self._keep = keep

    async def record(self, row: UsageRow) -> None:
        """Keep a row."""
        member = msgspec.msgpack.encode(to_values(row))
        await self._link.run(
            _RECORD, [USAGE], milliseconds(row.created_at), member, milliseconds(self._now() - self._keep)
        )

    async def report(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        key_id: str | None = None,
    ) -> UsageReport:
        """Add up rows. Each page is a call of its own: a report takes as long as its rows are many."""
        cells: dict[UsageCell, Totals] = {}
        recent: deque[UsageRow] = deque(maxlen=recent_limit(limit))
        low = 0 if since is None else milliseconds(since)
        high = "+inf" if until is None else f"({milliseconds(until)}"
        async for page in self._pages(low, high):
            for row in page:
                if key_id is None or row.key_id == key_id:
                    add_row(cells, row)
                    recent.append(row)
        return report_of(cells.items(), list(reversed(recent)))

    async def _pages(self, low: int, high: str) -> AsyncIterator[list[UsageRow]]:
        seen = 0
        while True:
            start, skip = low, seen
            members = await self._link.call(
                lambda client, start=start, skip=skip: client.zrange(  # type: ignore[misc]
                    USAGE, start, high, sortby=PureToken.BYSCORE, offset=skip, count=PAGE
                )
            )
            page = [from_values(msgspec.msgpack.decode(member)) for member in members]
            if not page:
                return
            yield page
            # The next page begins at the time of this one's last row, behind the rows of that time that were seen.
            last = milliseconds(page[-1].created_at)
            of_last = sum(milliseconds(row.created_at) == last for row in page)
            seen = seen + len(page) if last == low else of_last
            low = last
