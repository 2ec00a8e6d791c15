"""One completion that runs: what may be seen of it, and how it is ended from outside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ocp_trio.completion import Batch
from ocp_trio.errors import OcpError
from ocp_trio.shaping import Stream
from ocp_trio.web.ledger import Ledger
from ocp_trio.web.sinks import Sink

__all__ = ["Running"]


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

    @asynccontextmanager
    async def open(self, stream: Stream) -> AsyncIterator[AsyncIterator[Batch]]:
        """Open its upstream for the length of a block; `left` is set behind it."""
        try:
            async with stream(self.ledger.request) as batches:
                yield batches
        finally:
            self.left.set()
