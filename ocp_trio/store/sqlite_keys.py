"""Keep keys and quotas in SQLite."""

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from ocp_trio.errors import InvalidApiKeyError
from ocp_trio.store import key_secrets
from ocp_trio.store.records import Allowance, ApiKey, Charge, NewKey, Period, Quota, Verdict
from ocp_trio.store.rows import from_milliseconds, milliseconds
from ocp_trio.store.sqlite_lanes import SqliteLanes
from ocp_trio.store.windows import allowances, refusal, windows_at

__all__ = ["SqliteKeys", "SqliteQuotas"]

KEPT: Final = timedelta(days=62)
"""How long a window is kept after its beginning: the longest lasts 31 days, and refunds come within minutes."""

_COLUMNS: Final = "id, preview, name, created_at, revoked, daily, weekly, monthly"
_BY_ID_OR_NAME: Final = "WHERE id = :text OR name = :text ORDER BY id = :text DESC, number DESC LIMIT 1"


class SqliteKeys:
    """API keys; described by the protocol `Keys`.

    Args:
        lanes: The file.
        now: Tells the time.
    """

    def __init__(self, lanes: SqliteLanes, now: Callable[[], datetime]) -> None:
        self._lanes = lanes
        self._now = now

    async def create(self, name: str, quota: Quota = Quota()) -> NewKey:  # noqa: B008 (immutable)
        """Make a key."""
        key_secrets.check_name(name)
        secret = key_secrets.make_secret()
        created = from_milliseconds(milliseconds(self._now()))
        key = ApiKey(key_secrets.make_id(), key_secrets.preview(secret), name, created, revoked=False, quota=quota)

        def insert(connection: sqlite3.Connection) -> None:
            taken = "SELECT 1 FROM api_keys WHERE (name = :name AND NOT revoked) OR id = :name"
            if connection.execute(taken, {"name": name}).fetchone():
                raise key_secrets.name_taken()
            connection.execute(
                "INSERT INTO api_keys (id, hash, preview, name, created_at, daily, weekly, monthly)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key.id,
                    key_secrets.hash_secret(secret),
                    key.preview,
                    name,
                    milliseconds(created),
                    quota.daily,
                    quota.weekly,
                    quota.monthly,
                ),
            )

        await self._lanes.write(insert)
        return NewKey(key, secret)

    async def list(self) -> list[ApiKey]:
        """Return all keys, the oldest first."""
        query = f"SELECT {_COLUMNS} FROM api_keys ORDER BY number"  # noqa: S608 (a constant)
        return [_key(row) for row in await self._lanes.read(lambda connection: connection.execute(query).fetchall())]

    async def find(self, id_or_name: str) -> ApiKey | None:
        """Return a key."""
        text = key_secrets.searchable(id_or_name)
        return await self._lanes.read(lambda connection: _find(connection, text))

    async def authenticate(self, secret: str) -> ApiKey | None:
        """Return the key whose secret this is."""
        wanted = key_secrets.hash_secret(secret)
        query = f"SELECT hash, {_COLUMNS} FROM api_keys WHERE hash = ? AND NOT revoked"  # noqa: S608 (a constant)
        row = await self._lanes.read(lambda connection: connection.execute(query, (wanted,)).fetchone())
        return _key(row[1:]) if row is not None and key_secrets.same_hash(row[0], wanted) else None

    async def revoke(self, id_or_name: str) -> ApiKey | None:
        """Take a key out of service for good."""
        return await self._change(id_or_name, "revoked = 1")

    async def set_quota(self, id_or_name: str, quota: Quota) -> ApiKey | None:
        """Replace a key's quota."""
        limits = {"daily": quota.daily, "weekly": quota.weekly, "monthly": quota.monthly}
        return await self._change(id_or_name, "daily = :daily, weekly = :weekly, monthly = :monthly", **limits)

    async def _change(self, id_or_name: str, assignment: str, **values: int | None) -> ApiKey | None:
        text = key_secrets.searchable(id_or_name)

        def update(connection: sqlite3.Connection) -> ApiKey | None:
            key = _find(connection, text)
            if key is None:
                return None
            statement = f"UPDATE api_keys SET {assignment} WHERE id = :id"  # noqa: S608 (a constant)
            connection.execute(statement, values | {"id": key.id})
            return _find(connection, key.id)

        return await self._lanes.write(update)


class SqliteQuotas:
    """Requests counted by key; described by the protocol `Quotas`.

    Args:
        lanes: The file.
        now: Tells the time.
    """

    def __init__(self, lanes: SqliteLanes, now: Callable[[], datetime]) -> None:
        self._lanes = lanes
        self._now = now

    async def charge(self, key_id: str) -> Verdict:
        """Count one request in all three windows, or in none."""
        now = self._now()

        def count(connection: sqlite3.Connection) -> Verdict:
            key = _find(connection, key_id)
            if key is None or key.id != key_id or key.revoked:
                raise InvalidApiKeyError("the key is not in service")
            used = _used(connection, key_id, now)
            refused = refusal(key.quota, used, now)
            if refused is not None:
                return refused
            if not used["daily"]:
                _forget(connection, key_id, now)
            for period, window in windows_at(now).items():
                connection.execute(
                    "INSERT INTO quota_use VALUES (?, ?, ?, 1)"
                    " ON CONFLICT (key_id, period, window) DO UPDATE SET used = used + 1",
                    (key_id, period, window.name),
                )
            return Charge(key_id, now)

        # A request waits for this one; its row is synced, and its charge with it.
        return await self._lanes.write(count, hasty=True)

    async def refund(self, charge: Charge) -> None:
        """Take back a charge."""

        def discount(connection: sqlite3.Connection) -> None:
            for period, window in windows_at(charge.at).items():
                connection.execute(
                    "UPDATE quota_use SET used = used - 1 WHERE (key_id, period, window) = (?, ?, ?) AND used > 0",
                    (charge.key_id, period, window.name),
                )

        await self._lanes.write(discount, hasty=True)

    async def allowances(self, key_id: str) -> dict[Period, Allowance] | None:
        """Return limits and use of a key."""
        now = self._now()

        def look(connection: sqlite3.Connection) -> dict[Period, Allowance] | None:
            key = _find(connection, key_id)
            return None if key is None else allowances(key.quota, _used(connection, key_id, now), now)

        return await self._lanes.read(look)


def _key(row: tuple[Any, ...]) -> ApiKey:
    key_id, preview, name, created, revoked, *limits = row
    return ApiKey(key_id, preview, name, from_milliseconds(created), bool(revoked), Quota(*limits))


def _find(connection: sqlite3.Connection, text: str) -> ApiKey | None:
    query = f"SELECT {_COLUMNS} FROM api_keys {_BY_ID_OR_NAME}"  # noqa: S608 (constants)
    row = connection.execute(query, {"text": text}).fetchone()
    return None if row is None else _key(row)


def _forget(connection: sqlite3.Connection, key_id: str, now: datetime) -> None:
    """Drop the windows of a key that ended long ago, which is done at its first request of a day."""
    oldest = (now - KEPT).date().isoformat()
    connection.execute("DELETE FROM quota_use WHERE key_id = ? AND window < ?", (key_id, oldest))


def _used(connection: sqlite3.Connection, key_id: str, now: datetime) -> dict[Period, int]:
    used = {}
    for period, window in windows_at(now).items():
        row = connection.execute(
            "SELECT used FROM quota_use WHERE (key_id, period, window) = (?, ?, ?)", (key_id, period, window.name)
        ).fetchone()
        used[period] = row[0] if row else 0
    return used
