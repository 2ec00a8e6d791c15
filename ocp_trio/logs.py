"""Structured logs: one JSON object per line on stderr, and the newest of them in a bounded ring."""

import logging
import secrets
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count, islice
from traceback import walk_tb
from typing import Any, NamedTuple

import msgspec

__all__ = ["LogPage", "LogRing", "open_logs"]

_BEFORE = len(vars(logging.makeLogRecord({})))
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _entry(record: logging.LogRecord) -> dict[str, Any]:
    """Return a record as ``{ts, level, event, …}``: the message is the event's name, ``extra`` its fields."""
    when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = {"ts": when, "level": record.levelname.lower(), "event": record.getMessage()}
    fields = vars(record)
    # What a record has of its own stands behind what all have.
    return entry | {name: value for name, value in islice(fields.items(), _BEFORE, None) if name not in _STANDARD}


class LogPage(NamedTuple):
    """Some of the log's entries, and where the rest of them will begin."""

    entries: list[dict[str, Any]]
    """The newest last."""
    cursor: str
    """Names the newest entry of all, whichever were asked for; what comes after it is what has not been seen."""
    missed: int
    """Entries since the cursor asked for that have been dropped meanwhile."""


class LogRing(logging.Handler):
    """The newest entries of all loggers of this program, numbered from 1.

    Args:
        capacity: How many entries are kept.
    """

    def __init__(self, capacity: int = 1000) -> None:
        super().__init__(logging.INFO)
        self._entries: deque[tuple[int, dict[str, Any]]] = deque(maxlen=capacity)
        self._numbers = count(1)
        # A number says nothing to the next run of the server, which counts anew.
        self._run = secrets.token_hex(4)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self._entries.append((next(self._numbers), _entry(record)))

    def newest(self, count: int, *, level: str | None = None, event: str | None = None) -> list[dict[str, Any]]:
        """Return at most ``count`` entries, the newest last, of one level or event if given."""
        return self.read(count, level=level, event=event).entries

    def read(self, count: int, *, level: str | None = None, event: str | None = None, after: str = "") -> LogPage:
        """Return at most ``count`` of the newest entries after a cursor; any other text is the beginning."""
        run, _, digits = after.partition(".")
        last_seen = int(digits) if run == self._run and digits.isdecimal() and len(digits) < 19 else 0
        # Copied at once: other threads log too.
        kept = list(self._entries)
        found = [
            entry
            for number, entry in kept
            if number > last_seen
            and (level is None or entry["level"] == level)
            and (event is None or entry["event"] == event)
        ]
        first, last = (kept[0][0], kept[-1][0]) if kept else (1, 0)
        missed = max(first - last_seen - 1, 0) if last_seen else 0
        return LogPage(found[-count:] if count > 0 else [], f"{self._run}.{last}", missed)


def _places(error: BaseException) -> list[str]:
    """Return what kind of error it is and where it came from, and the same of its causes.

    Its message is left out, which may quote whatever was being worked on: a prompt, an answer, a key.
    """
    places: list[str] = []
    waiting, seen = [error], {id(error)}
    while waiting:
        each = waiting.pop()
        for frame, line in walk_tb(each.__traceback__):
            places.append(f"{frame.f_globals.get('__name__', '?')}:{line} {frame.f_code.co_name}")
        places.append(type(each).__name__)
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        new = [cause for cause in (each.__context__, each.__cause__, *inner) if cause and id(cause) not in seen]
        # An error may be its own cause in the end.
        seen |= set(map(id, new))
        waiting += new
    return places


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = _entry(record)
        if record.exc_info and record.exc_info[1]:
            entry["traceback"] = _places(record.exc_info[1])
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
