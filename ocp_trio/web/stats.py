"""Count completions so that the numbers always add up: each has exactly one outcome."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ocp_trio.web.ended import Ended

__all__ = ["ModelStats", "Stats"]

MAX_MODELS: Final = 100
"""Models that are counted apart: callers choose the names."""
OTHER: Final = "other"
"""Where all further models are counted."""
RECENT_ERRORS: Final = 20
"""Errors that are remembered."""


@dataclass(slots=True)
class ModelStats:
    """Completions of one model that have ended; times in seconds."""

    requests: int = 0
    successes: int = 0
    errors: int = 0
    timeouts: int = 0
    cancelled: int = 0
    total_elapsed: float = 0.0
    max_elapsed: float = 0.0

    def count(self, ended: Ended) -> None:
        """Add one that has ended."""
        self.requests += 1
        self.total_elapsed += ended.seconds
        self.max_elapsed = max(self.max_elapsed, ended.seconds)
        if ended.cancelled:
            self.cancelled += 1
        elif ended.timed_out:
            self.timeouts += 1
        elif ended.error is not None:
            self.errors += 1
        else:
            self.successes += 1


@dataclass(slots=True)
class Stats:
    """Completions since the start.

    Attributes:
        total: Those that have begun: the sum of all that have ended, and of those that still run.
        ended: All that have ended.
        models: The same, by model.
        recent_errors: Those that have failed, the newest last.
        lost_rows: Requests that ended while the store was down, and have no row.
    """

    total: int = 0
    ended: ModelStats = field(default_factory=ModelStats)
    models: dict[str, ModelStats] = field(default_factory=dict)
    recent_errors: deque[Ended] = field(default_factory=lambda: deque(maxlen=RECENT_ERRORS))
    lost_rows: int = 0

    def count(self, ended: Ended) -> None:
        """Add one completion that has ended."""
        self.ended.count(ended)
        name = ended.model if ended.model in self.models or len(self.models) < MAX_MODELS else OTHER
        self.models.setdefault(name, ModelStats()).count(ended)
        if ended.message is not None:
            self.recent_errors.append(ended)
