"""Structured logs: one JSON object per line on stderr, and the newest of them in a bounded ring."""

import logging
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

__all__ = ["LogRing", "open_logs"]

_BEFORE = len(vars(logging.makeLogRecord({})))
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _entry(record: logging.LogRecord) -> dict[str, Any]:
    """Return a record as ``{ts, level, event, …}``: the message is the event's name, ``extra`` its fields."""
    when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = {"ts": when, "level": record.levelname.lower(), "event": record.getMessage()}
    fields = vars(record)
    # What a record has of its own stands behind what all have.
    return entry | {name: value for name, value in islice(fields.items(), _BEFORE, None) if name not in _STANDARD}


class LogRing(logging.Handler):
    """The newest entries of all loggers of this program.

    Args:
        capacity: How many entries are kept.
    """

    def __init__(self, capacity: int = 1000) -> None:
        super().__init__(logging.INFO)
        self._entries: deque[dict[str, Any]] = deque(maxlen=capacity)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self._entries.append(_entry(record))

    def newest(self, count: int, *, level: str | None = None, event: str | None = None) -> list[dict[str, Any]]:
        """Return at most ``count`` entries, the newest last, of one level or event if given."""
        found = [
            entry
            for entry in self._entries
            if (level is None or entry["level"] == level) and (event is None or entry["event"] == event)
        ]
        return found[-count:] if count > 0 else []


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = _entry(record)
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


@contextmanager
def open_logs(ring: LogRing) -> Iterator[None]:
    """Send this program's log to stderr and to ``ring`` for the length of a block."""
    logger = logging.getLogger("ocp_trio")
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(_JsonLines())
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(lines)
    logger.addHandler(ring)
    try:
        yield
    finally:
        logger.removeHandler(ring)
        logger.removeHandler(lines)
        logger.level, logger.propagate = before
