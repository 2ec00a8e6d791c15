"""Count children: how many are alive, and how many had to be told to end."""

import signal
from collections import Counter
from dataclasses import dataclass, field

__all__ = ["ProcessTally"]


@dataclass(slots=True)
class ProcessTally:
    """The children of whoever passes it to `open_child_process`.

    Attributes:
        alive: Those that have been started and not been reaped.
        signals: Signals that were sent to end one, or what it had left behind in its process group, by name.
    """

    alive: int = 0
    signals: Counter[str] = field(default_factory=Counter)

    def count_signal(self, number: int) -> None:
        """Count one that has reached somebody."""
        self.signals[signal.Signals(number).name] += 1
