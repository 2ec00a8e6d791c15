"""Count requests so that the numbers always add up: each has exactly one outcome."""

from dataclasses import dataclass

from ocp_trio.errors import OcpError, RequestCancelledError, TotalTimeoutError, UpstreamStalledError

__all__ = ["Stats"]


@dataclass(slots=True)
class Stats:
    """Completions since the start: ``total`` equals the sum of all others and of those that still run."""

    total: int = 0
    succeeded: int = 0
    errors: int = 0
    timeouts: int = 0
    cancelled: int = 0
    lost_rows: int = 0
    """Requests that ended while the store was down, and have no row."""

    def count(self, outcome: OcpError | None, *, cancelled: bool) -> None:
        """Add one completion that has ended."""
        match outcome:
            case _ if cancelled:
                self.cancelled += 1
            case None:
                self.succeeded += 1
            case RequestCancelledError():
                self.cancelled += 1
            case TotalTimeoutError() | UpstreamStalledError():
                self.timeouts += 1
            case _:
                self.errors += 1
