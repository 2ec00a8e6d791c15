"""A backend that needs no model: a scripted answer, token by token, with a pause long enough to see heartbeats."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import trio

from ocp_trio.completion import (
    BackendState,
    Batch,
    Completed,
    CompletionRequest,
    Model,
    Started,
    TextDelta,
    TextEnd,
    Usage,
)
from ocp_trio.errors import InvalidRequestError

__all__ = ["DemoBackend"]

ANSWER = (
    "This is the demo model of ocp_trio: there is no language model behind it. Now it is silent, like one that thinks.",
    " And here it is again. With heartbeats on, your stream said all the time that it was alive.",
)
"""The two halves of every answer; the pause stands between them."""


class DemoBackend:
    """Serves the model ``demo``.

    Args:
        pause: Seconds of silence in the middle of an answer.
        gap: Seconds between two words.
    """

    name: Final = "demo"
    starts_at_once: Final = True
    models = (Model("demo", 8_192, 8_192),)
    state = BackendState()

    def __init__(self, *, pause: float = 6.0, gap: float = 0.03) -> None:
        self._pause = pause
        self._gap = gap

    def resolve(self, model: str) -> str | None:
        """Return ``demo`` for itself, None for anything else."""
        return model if model == "demo" else None

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Stream the scripted answer.

        Cancellation: at once.

        Raises:
            InvalidRequestError: a tool has to be called.
        """
        if request.tool_choice.mode == "required":
            raise InvalidRequestError(
                "the demo model calls no tools", code="unsupported_parameter", param="tool_choice"
            )
        async with aclosing(self._batches()) as batches:
            yield batches

    async def _batches(self) -> AsyncGenerator[Batch, None]:
        yield (Started(),)
        words = 0
        for half in ANSWER:
            if words:
                await trio.sleep(self._pause)
            for word in half.split(" "):
                await trio.sleep(self._gap)
                yield (TextDelta(f" {word}" if words else word),)
                words += 1
        yield (TextEnd(), Completed("stop", Usage(input=1, output=words)))
