"""End an answer, and the work for it, at the first of its stop sequences."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TypeAlias

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    TextDelta,
    ToolCallStart,
    Usage,
)
from ocp_trio.openai.stop import StopFilter

__all__ = ["Stream", "end_at_stops"]

Stream: TypeAlias = Callable[[CompletionRequest], AbstractAsyncContextManager[AsyncIterator[Batch]]]
"""The ``stream`` of a backend, or something of its shape."""


def end_at_stops(stream: Stream, stops: Sequence[str]) -> Stream:
    """Return a stream whose visible text ends before the first of ``stops``, with finish reason ``stop``.

    Upstream is ended as soon as the terminal event has been taken and the block is left; usage is then what upstream
    has told of it.
    """

    @asynccontextmanager
    async def ended(request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        async with stream(request) as batches, aclosing(_end(batches, StopFilter(stops))) as shorter:
            yield shorter

    return ended


async def _end(batches: AsyncIterator[Batch], stop: StopFilter) -> AsyncGenerator[Batch, None]:
    usage = Usage()
    async for batch in batches:
        usage = _newest_usage(batch) or usage
        shorter: list[Event] = []
        for event in batch:
            if isinstance(event, TextDelta):
                text, kept = stop.feed(event.text), None
            else:
                # Whatever ends a text shows that no stop sequence comes of what was held back.
                text = stop.flush() if isinstance(event, ToolCallStart | Completed | Failed) else ""
                kept = event
            shorter += [TextDelta(text)] if text else []
            shorter += [kept] if kept else []
            if stop.hit:
                yield (*shorter, Completed("stop", usage))
                return
        yield tuple(shorter)


def _newest_usage(batch: Batch) -> Usage | None:
    return next(
        (event.usage for event in reversed(batch) if isinstance(event, Activity | Completed) and event.usage), None
    )
