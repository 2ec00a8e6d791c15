"""Answer one chat completion: run its exchange, say once how it ended."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TypeAlias, cast

import trio

from ocp_trio.completion import Completed, CompletionRequest, Failed
from ocp_trio.errors import InternalError, OcpError, StoreUnavailableError, TotalTimeoutError
from ocp_trio.shaping import Stream
from ocp_trio.streaming import run_exchange
from ocp_trio.web.connection import Send
from ocp_trio.web.ledger import Ledger
from ocp_trio.web.lifecycle import Lifecycle
from ocp_trio.web.metrics import Metrics
from ocp_trio.web.running import Running
from ocp_trio.web.sinks import BEAT, Headers, Item, Sink, is_last
from ocp_trio.web.stats import Stats

__all__ = ["ChatAnswer"]

Source: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Item]]

logger = logging.getLogger("ocp_trio.web")


@dataclass(frozen=True, kw_only=True)
class ChatAnswer:
    """A response to be: everything that it takes to answer one request.

    Attributes:
        request_id: Names the request in headers and logs.
        stream: Produces the completion.
        ledger: Keeps its accounts.
        request: What to complete.
        make_sink: Makes what writes to the client.
        heartbeat_interval: Seconds of silence before a heartbeat; infinite for none.
        arrived: When the request arrived, by Trio's clock.
        timeout: Seconds from then until it is ended; infinite for never.
    """

    request_id: str
    stream: Stream
    ledger: Ledger
    request: CompletionRequest
    make_sink: Callable[[Send, Headers], Sink]
    heartbeat_interval: float = inf
    arrived: float
    timeout: float
    lifecycle: Lifecycle
    stats: Stats
    metrics: Metrics

    async def respond(self, send: Send, headers: Headers) -> None:
        """Send the whole response.

        Cancellation: the client has left, or the server ends: the backend's stream is ended within its own bound.
        """
        self.stats.total += 1
        sink = self.make_sink(send, headers)
        running = Running(self.ledger, sink)
        logger.info("request_start", extra={"id": self.request_id, "model": self.request.model})
        try:
            with self.lifecycle.completion(running):
                await self._run(running, sink)
        finally:
            await self._settle(sink.outcome, sink.beats)

    async def _run(self, running: Running, sink: Sink) -> None:
        try:
            await self._exchange(running, sink)
        except Exception:
            # The request's boundary: a defect ends this request, with an answer, and no other.
            logger.exception("internal_error", extra={"id": self.request_id})
            await sink.write((Failed(InternalError("internal error")),))
        finally:
            # In the same pass of the scheduler in which it ceases to run: the counters always add up.
            self._account(sink)

    async def _exchange(self, running: Running, sink: Sink) -> None:
        async def write(item: Item) -> bool:
            if isinstance(item, tuple):
                self.ledger.saw(item)
                if is_last(item):
                    # Before the end is told: what a client has seen end has its row, whatever happens to us then.
                    await self._settle(cast("Completed | Failed", item[-1]), sink.beats)
            written = await sink.write(item)
            if item is BEAT and sink.beats == 1:
                interval = round(self.heartbeat_interval * 1000)
                logger.info("heartbeat_active", extra={"session": self.request.session, "intervalMs": interval})
            return written

        await run_exchange(
            cast("Source", running.open(self.stream)),
            write,
            is_last=is_last,
            failed=lambda error: (Failed(error),),
            beat=BEAT,
            heartbeat_interval=self.heartbeat_interval,
            cut=partial(self._cut, running),
        )

    async def _settle(self, outcome: Completed | Failed | None, beats: int) -> None:
        try:
            await self.ledger.settle(outcome, beats)
        except StoreUnavailableError as error:
            # The answer is there, and paid for: it is told, and its row is missed in the log.
            self.stats.lost_rows += 1
            logger.error("usage_lost", extra={"id": self.request_id, "problem": str(error)})  # noqa: TRY400

    async def _cut(self, running: Running) -> OcpError:
        """Return why the exchange has to end early, when it has to."""
        with trio.move_on_at(self.arrived + self.timeout):
            return await running.wait_ended()
        return TotalTimeoutError(self.timeout)

    def _account(self, sink: Sink) -> None:
        ended = self.ledger.ended(sink.outcome, sink.beats)
        self.stats.count(ended)
        self.metrics.count(ended)
        self.lifecycle.remember(ended)
        logger.info(
            "request_end",
            extra={
                "id": self.request_id,
                "model": ended.model,
                "outcome": ended.outcome,
                "seconds": round(ended.seconds, 3),
                "heartbeats": ended.heartbeats,
            },
        )
