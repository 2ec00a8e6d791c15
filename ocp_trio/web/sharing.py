"""Answer equal requests of one caller once: from the cache, or, while the answer is being made, from its flight.

::

    request ──▶ cached? replay it : follow the flight of its key, from its beginning
    flight      cached meanwhile? replay it : stream it, and cache it      in a task of the store's own block

A flight goes on for as long as anybody follows it, on any instance, whoever began it. Nobody of those has ended before
what the flight has started is gone.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress

import trio

from ocp_trio.completion import Batch, Completed, CompletionRequest, Failed
from ocp_trio.errors import InternalError, OcpError, StoreUnavailableError, TotalTimeoutError
from ocp_trio.shaping import Stream
from ocp_trio.store import Flights, Producer, Publish, Store
from ocp_trio.web.batches import decode_batch, encode_batch
from ocp_trio.web.cache import at_no_cost, keep, look_up, replay
from ocp_trio.web.lifecycle import Lifecycle

__all__ = ["share_answers"]

LIFETIMES = 2
"""Total limits of a request after which a flight is ended: nobody who joined within the first is cut short, and those
that keep joining an upstream that is dead do not keep it for ever."""

logger = logging.getLogger("ocp_trio.web")


def share_answers(
    stream: Stream, store: Store, key: bytes, *, ttl: float, timeout: float, lifecycle: Lifecycle
) -> Stream:
    """Return a stream whose upstream runs once for all equal requests at once, and for those of ``ttl`` seconds after.

    A store that is down costs the sharing, never the answer.

    Args:
        stream: Makes the answer.
        store: Where its cache and its flights are.
        key: What equal requests have in common, the caller included.
        ttl: Seconds for which the answer is kept.
        timeout: Seconds that a request may take.
        lifecycle: Told of each flight that this instance leads.
    """
    once = _keep_answer(stream, store, key, ttl)

    @asynccontextmanager
    async def shared(request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        try:
            found = await look_up(store.cache, key)
        except StoreUnavailableError:
            logger.warning("cache_unavailable")
            async with stream(request) as batches:
                yield batches
            return
        if found is not None:
            async with aclosing(replay(found)) as batches:
                yield batches
            return
        leads = trio.Event()
        producer = _producer(once, request, timeout, lifecycle, leads)
        async with _follow(store.flights, key, producer, leads) as batches:
            yield batches

    return shared


def _keep_answer(stream: Stream, store: Store, key: bytes, ttl: float) -> Stream:
    """Return a stream that caches its answer, unless that has been done since it was looked for."""

    @asynccontextmanager
    async def once(request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        found = None
        with suppress(StoreUnavailableError):
            found = await look_up(store.cache, key)
        if found is not None:
            async with aclosing(replay(found)) as batches:
                yield batches
            return
        async with stream(request) as live, aclosing(keep(live, store.cache, key, ttl)) as batches:
            yield batches

    return once


def _producer(
    stream: Stream, request: CompletionRequest, timeout: float, lifecycle: Lifecycle, leads: trio.Event
) -> Producer:
    async def produce(publish: Publish) -> None:
        """Publish the whole answer; whatever it fails with is its last batch. ``leads`` is set: this one runs.

        Cancellation: nobody follows any more: the stream is ended within its own bound.
        """
        leads.set()
        with lifecycle.flight():
            failure: OcpError | None = None
            try:
                with trio.move_on_after(LIFETIMES * timeout) as lifetime:
                    async with stream(request) as batches:
                        async for batch in batches:
                            await publish(encode_batch(batch))
                if lifetime.cancelled_caught:
                    failure = TotalTimeoutError(timeout)
            except OcpError as error:
                failure = error
            except Exception:
                # A flight's boundary, as there is one for each request: a defect ends those that follow, and no other.
                logger.exception("internal_error")
                failure = InternalError("internal error")
            if failure is not None:
                await publish(encode_batch((Failed(failure),)))

    return produce


@asynccontextmanager
async def _follow(
    flights: Flights, key: bytes, produce: Producer, leads: trio.Event
) -> AsyncIterator[AsyncIterator[Batch]]:
    async with flights.follow(key, produce) as pieces, aclosing(_decoded(pieces, leads)) as batches:
        yield batches
        # The answer has been told; whoever made it may be about to leave, and is not hurried.
        async for _ in pieces:
            continue


async def _decoded(pieces: AsyncIterator[bytes], leads: trio.Event) -> AsyncGenerator[Batch, None]:
    async for piece in pieces:
        match decode_batch(piece):
            case (*others, Completed(reason, usage)) if not leads.is_set():
                # What it cost is counted once, for whoever began it.
                yield (*others, Completed(reason, at_no_cost(usage)))
            case batch:
                yield batch
