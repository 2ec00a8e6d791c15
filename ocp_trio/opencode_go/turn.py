"""One request and the stream that answers it."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import httpx
import trio

from ocp_trio.completion import Batch, Failed, Started
from ocp_trio.errors import OcpError
from ocp_trio.opencode_go.answer import Answer
from ocp_trio.opencode_go.http_exchange import Exchange, open_exchange
from ocp_trio.opencode_go.sse_decoder import SseDecoder
from ocp_trio.streaming import Sighting, StallGuard

__all__ = ["Piece", "Turn"]

logger = logging.getLogger("ocp_trio.opencode_go")


class Piece(NamedTuple):
    """A batch, the bytes that it was read from, and what the stall guard has to know of it."""

    batch: Batch
    size: int = 0
    sighting: Sighting | None = None


class Turn:
    """What upstream is asked, and what it answers.

    Args:
        client: Asks.
        request: What it asks.
        answer: Fresh; reads the flavour that will come.
        guard: Told of all that comes.
        secret: The key, which nothing that upstream says may repeat.
        queued: Seconds that the request has waited for its turn.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        request: httpx.Request,
        answer: Answer[Any],
        guard: StallGuard,
        secret: str,
        *,
        queued: float,
    ) -> None:
        self._client = client
        self._request = request
        self._answer = answer
        self._guard = guard
        self._secret = secret
        self._queued = queued

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncIterator[Piece]]:
        """Ask, and stream what comes for the length of a block; the stream exists once upstream has begun to answer."""
        async with open_exchange(self._client, self._request) as exchange:
            await exchange.check(self._secret)
            async with aclosing(self._pieces(exchange)) as pieces:
                yield pieces

    async def _pieces(self, exchange: Exchange) -> AsyncGenerator[Piece, None]:
        yield Piece((Started(self._queued),))
        decoder, answer, guard = SseDecoder(), self._answer, self._guard
        while data := await exchange.receive_some():
            batch = answer.feed(decoder.feed(data))
            exchange.complete = answer.done
            guard.saw_bytes(len(data))
            if batch:
                sighting = answer.sighting(batch)
                # The channel that takes the batch counts it as one event.
                guard.saw_event(sighting, count=len(batch) - 1)
                yield Piece(batch, len(data), sighting)

    async def tell(self, pieces: trio.abc.ReceiveChannel[Piece]) -> AsyncGenerator[Batch, None]:
        """Yield batches up to the terminal event, whatever ends the stream.

        Raises:
            OcpError: there was no answer at all.
        """
        started = False
        try:
            async for piece in pieces:
                started = True
                yield piece.batch
            if not self._answer.done:
                yield (self._answer.completed(),)
        except OcpError as error:
            if not started:
                raise
            yield (Failed(error),)
        finally:
            if self._answer.odd_events:
                logger.info("odd_events", extra={"count": self._answer.odd_events})
