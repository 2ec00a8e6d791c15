"""One completion that runs: what may be seen of it, and how it is ended from outside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from ocp_trio.completion import Batch, Failed
from ocp_trio.errors import OcpError
from ocp_trio.openai.errors import error_object
from ocp_trio.shaping import Stream
from ocp_trio.web.callers import Caller
from ocp_trio.web.ledger import Ledger
from ocp_trio.web.sinks import Sink

__all__ = ["Ended", "Running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What is remembered of a completion that has ended."""

    request_id: str
    owner: Caller
    model: str
    outcome: str
    """``ok``, ``cancelled``, or the code of its error."""
    message: str | None
    """What its client was told of an error; None where there was none."""
    at: float
    """By Trio's clock."""
    seconds: float


class Running:
    """A completion from its arrival to its end.

    Args:
        ledger: Its accounts: whose it is, its model, when it arrived, what its upstream has said so far.
        sink: Its response: the heartbeats so far.

    Attributes:
        left: Set when its upstream is gone: no child is left, and its slot is free.
    """

    def __init__(self, ledger: Ledger, sink: Sink) -> None:
        self.ledger = ledger
        self.sink = sink
        self.left = trio.Event()
        self._why: OcpError | None = None
        self._ended = trio.Event()

    def end(self, why: OcpError) -> None:
        """Have it ended, with this error; the first reason counts, and none if it comes to its end by itself."""
        self._why = self._why or why
        self._ended.set()

    async def wait_ended(self) -> OcpError:
        """Wait until somebody ends it, and return why."""
        await self._ended.wait()
        assert self._why is not None
        return self._why

    def ended(self) -> Ended:
        """Sum up what has come of it; call it at its end."""
        outcome, now = self.sink.outcome, trio.current_time()
        error = error_object(outcome.error) if isinstance(outcome, Failed) else None
        code = "cancelled" if outcome is None else (error.code or error.type) if error else "ok"
        return Ended(
            request_id=self.ledger.request_id,
            owner=self.ledger.caller,
            model=self.ledger.request.model,
            outcome=code,
            message=error.message if error and code != "cancelled" else None,
            at=now,
            seconds=round(now - self.ledger.arrived, 3),
        )

    @asynccontextmanager
    async def open(self, stream: Stream) -> AsyncIterator[AsyncIterator[Batch]]:
        """Open its upstream for the length of a block; `left` is set behind it."""
        try:
            async with stream(self.ledger.request) as batches:
                yield batches
        finally:
            self.left.set()
