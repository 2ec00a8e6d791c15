"""What a figure is: a number of each server, a target, and how to say both."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

from servers import Settings, Subject

__all__ = ["Figure", "Group", "Results", "percentile", "row", "titles"]


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        key: Names it in the JSON file.
        label: Names it in the table.
        unit: Of its number.
        target: What ours has to be at most, or at least where ``more`` is better; None where nothing is demanded.
    """

    key: str
    label: str
    unit: str
    target: float | None = None
    more: bool = False

    def verdict(self, value: float) -> str:
        """Say whether a number of ours meets the target."""
        if self.target is None or math.isnan(value):
            return ""
        return "PASS" if (value >= self.target if self.more else value <= self.target) else "over"


@dataclass(frozen=True)
class Group:
    """Figures that are measured together, by ``measure(subject, seconds)``, on a server started with ``settings``."""

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[Subject, float], Mapping[str, float]]
    settings: Settings = field(default_factory=Settings)


class Results:
    """The numbers of all runs: per figure and server their median counts."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, list[float]]] = {}

    def add(self, server: str, values: Mapping[str, float]) -> None:
        """Take what one run measured."""
        for key, value in values.items():
            self._runs.setdefault(key, {}).setdefault(server, []).append(value)

    def value(self, key: str, server: str) -> float:
        """Return the median; NaN if there is none."""
        runs = self._runs.get(key, {}).get(server, [])
        return median(runs) if runs else math.nan

    def ratio(self, key: str, server: str) -> float:
        """Return ours divided by another server's."""
        other = self.value(key, server)
        return self.value(key, "ours") / other if other else math.nan

    def report(self, figure: Figure, servers: list[str]) -> dict[str, object]:
        """Return all that is known of a figure, for a JSON file."""
        runs = self._runs.get(figure.key, {})
        return {
            "label": figure.label,
            "unit": figure.unit,
            "target": figure.target,
            "verdict": figure.verdict(self.value(figure.key, "ours")),
            "median": {server: _number(self.value(figure.key, server)) for server in servers},
            "runs": {server: [_number(run) for run in runs.get(server, [])] for server in servers},
        }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.6g}")


def percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that ``percent`` of all do not exceed; NaN if there are none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def _text(value: float) -> str:
    if math.isnan(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def titles(others: list[str]) -> str:
    """Make the head of the table; ``others`` names the servers beside ours."""
    named = "".join(f"{name:>11}{'ours/' + name:>{len(name) + 8}}" for name in others)
    return f"{'figure':<54}{'ours':>11}{'target':>11}{named}  verdict"


def row(figure: Figure, results: Results, others: list[str]) -> str:
    """Make one line of the table."""
    ours = results.value(figure.key, "ours")
    sign = ">= " if figure.more else "<= "
    target = "" if figure.target is None else sign + _text(figure.target)
    text = f"{figure.label + ', ' + figure.unit:<54}{_text(ours):>11}{target:>11}"
    for name in others:
        value, ratio = results.value(figure.key, name), results.ratio(figure.key, name)
        text += f"{_text(value):>11}{_text(ratio):>{len(name) + 8}}"
    return f"{text}  {figure.verdict(ours)}".rstrip()
