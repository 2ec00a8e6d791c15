"""What is counted of a completion that has ended."""

import msgspec

from ocp_trio.errors import OcpError, RequestCancelledError, TotalTimeoutError, UpstreamStalledError
from ocp_trio.openai.errors import error_object
from ocp_trio.web.callers import Caller

__all__ = ["Ended"]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one completion; times are in seconds from its arrival.

    Attributes:
        request_id: Its id.
        owner: Whose it was.
        at: When it ended, by Trio's clock.
        model: What was asked.
        backend: Who was asked.
        error: Why there is no (whole) answer; None if there is, or if the client has left.
        left: The client has left before the end.
        seconds: When it ended.
        first_delta: When the first visible text came; None if none did.
        queued: How long it had waited for its turn.
        deltas: Pieces of text, reasoning and tool calls that came.
        heartbeats: How many were sent.
    """

    request_id: str
    owner: Caller
    at: float
    model: str
    backend: str
    error: OcpError | None
    left: bool
    seconds: float
    first_delta: float | None
    queued: float
    deltas: int
    heartbeats: int

    @property
    def cancelled(self) -> bool:
        """Whether somebody wanted it ended: its client, or who cancelled it by its id."""
        return self.left or isinstance(self.error, RequestCancelledError)

    @property
    def timed_out(self) -> bool:
        """Whether a limit of time ended it."""
        return isinstance(self.error, TotalTimeoutError | UpstreamStalledError)

    @property
    def stalled(self) -> bool:
        """Whether its upstream had fallen silent."""
        return isinstance(self.error, UpstreamStalledError)

    @property
    def outcome(self) -> str:
        """``ok``, ``cancelled``, or the code of its error."""
        if self.left:
            return "cancelled"
        if self.error is None:
            return "ok"
        told = error_object(self.error)
        return told.code or told.type

    @property
    def message(self) -> str | None:
        """What its client was told of an error; None where there was none."""
        return None if self.error is None or self.cancelled else error_object(self.error).message
