"""Open the SQLite file, private to its owner, with the tables of this version."""

import sqlite3
from pathlib import Path
from typing import Final

from ocp_trio.store.rows import COLUMNS

__all__ = ["connect", "sqlite_path"]

VERSION: Final = 1
"""Of the tables; a file that a newer version of this program wrote is not touched."""

_TYPES = {"cost_usd": "REAL"} | dict.fromkeys(
    ("request_id", "key_id", "key_name", "model", "backend", "outcome"), "TEXT"
)

_TABLES = f"""
CREATE TABLE api_keys (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE,
    preview TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0,
    daily INTEGER,
    weekly INTEGER,
    monthly INTEGER
);
CREATE UNIQUE INDEX api_keys_in_service ON api_keys (name) WHERE NOT revoked;
CREATE INDEX api_keys_by_name ON api_keys (name);
CREATE TABLE quota_use (
    key_id TEXT NOT NULL,
    period TEXT NOT NULL,
    window TEXT NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (key_id, period, window)
) WITHOUT ROWID;
CREATE TABLE usage ({", ".join(f"{name} {_TYPES.get(name, 'INTEGER')}" for name in COLUMNS)});
CREATE UNIQUE INDEX usage_by_time ON usage (created_at, request_id);
CREATE INDEX usage_by_key ON usage (key_id, created_at);
PRAGMA user_version = {VERSION};
"""


def sqlite_path(text: str) -> Path:
    """Return the file that a setting names; ``sqlite`` or nothing is the one in ``~/.ocp``."""
    return default_folder() / "ocp-trio.db" if text in {"", "sqlite"} else Path(text).expanduser()


def default_folder() -> Path:
    """Return the folder that is this program's own."""
    return Path.home() / ".ocp"


def connect(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """Open the file; make it, and its folder, where they are missing.

    Args:
        path: The file, for its owner's eyes only; so is its folder where it is made here, or is the default one.
        busy_timeout: Seconds to wait for another process that writes.

    Raises:
        sqlite3.Error: it is no store, it is locked, or a newer version wrote it.
        OSError: it cannot be made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent == default_folder():
        path.parent.chmod(0o700)
    # SQLite makes its other files with the permissions of this one.
    path.touch(mode=0o600)
    path.chmod(0o600)
    # Threads take turns, and each change begins its transaction itself.
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        _make_tables(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have made them meanwhile.
    match _version(connection):
        case 0:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
        case newer if newer > VERSION:
            raise sqlite3.DatabaseError(f"tables of version {newer} are newer than this program's {VERSION}")
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
