"""The engines that a store is tested on: SQLite in a temporary file, a real Redis on a free port of the loopback."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest

from ocp_trio.store import UsageRow

__all__ = ["Clock", "Engine", "RedisServer", "SqliteFile", "require_redis", "row"]

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
"""A Wednesday."""


class Clock:
    """A wall clock that a test sets."""

    def __init__(self, now: datetime = NOON) -> None:
        self.time = now

    def __call__(self) -> datetime:
        return self.time

    def advance(self, **span: float) -> None:
        self.time += timedelta(**span)


class Engine(Protocol):
    """Where a test's store lives."""

    where: str
    shared: bool
    """Whether cache and flights are those of all instances as well."""

    def outage(self) -> Any:
        """A context manager: nothing answers for the length of the block."""


class SqliteFile:
    """An engine of its own for each test: a file that is not there yet."""

    shared = False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "private" / "store.db"
        self.where = str(self.path)

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Have a file stand where the folder belongs."""
        away = self.path.parent.with_name("away")
        there = self.path.parent.exists()
        if there:
            self.path.parent.rename(away)
        self.path.parent.touch()
        try:
            yield
        finally:
            self.path.parent.unlink()
            if there:
                away.rename(self.path.parent)


def require_redis() -> str:
    """Return the path of ``redis-server``; without it skip the test, or fail it where ``OCP_REQUIRE_REDIS=1``."""
    if path := shutil.which("redis-server") or shutil.which("valkey-server"):
        return path
    reason = "redis-server is not installed"
    if os.environ.get("OCP_REQUIRE_REDIS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class RedisServer:
    """A Redis of this test run."""

    shared = True

    def __init__(self, program: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.where = f"redis://127.0.0.1:{self.port}"
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)]
        self._command += ["--save", "", "--appendonly", "yes"]
        self.start()

    def start(self) -> None:
        """Start it, and return as soon as it takes connections."""
        # Its few lines of log fit into the pipe.
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if not any(b"Ready to accept" in line for line in self._process.stdout):
            pytest.fail("redis-server did not start")

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Let it take connections and answer nothing."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def ask(self, *words: str) -> bytes:
        """Run a command, and return the beginning of the answer."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            return connection.recv(4096)


def row(request_id: str, at: datetime = NOON, **values: Any) -> UsageRow:
    """Return a row of usage."""
    common = {"key_id": "key_1", "key_name": "anna", "model": "sonnet", "backend": "claude", "outcome": "ok"}
    return UsageRow(request_id=request_id, created_at=at, **common | values)
