"""A child on loan to one turn, and the counts of all loans."""

from dataclasses import dataclass
from typing import NamedTuple

from ocp_trio.claude.keeper import KeptChild
from ocp_trio.streaming import Child

__all__ = ["Lease", "PoolCounts"]


@dataclass(slots=True)
class PoolCounts:
    """What became of children that waited."""

    hits: int = 0
    """Turns that found an unused child waiting."""
    continued: int = 0
    """Turns that went on in the child of their conversation."""
    misses: int = 0
    """Turns that had to start a child."""
    replaced: int = 0
    """Waiting children that were replaced: too old, out of date, or dead."""
    failed_starts: int = 0
    """Children that could not be started ahead, or that ended at once."""


class Lease(NamedTuple):
    """A child that is lent to one turn, and how many of the request's messages it knows already."""

    kept: KeptChild
    known: int

    @property
    def child(self) -> Child:
        """The process."""
        return self.kept.child
