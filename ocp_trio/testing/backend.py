"""A backend that does what a script says, at the times that it says."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

import trio

from ocp_trio.completion import BackendState, Batch, CompletionRequest, Model, Started

__all__ = ["ScriptedBackend", "Step"]

Step: TypeAlias = Batch | float | Exception


class ScriptedBackend:
    """Serves one script to every request.

    Args:
        script: Batches to yield, seconds to be silent, errors to raise; `Started` comes by itself.
        refuse: An error to raise before anything is started.
        wait: Seconds until a request's turn comes.
        clean_up: Seconds that ending a stream takes, shielded, as ending a child does.

    Attributes:
        requests: What was asked for.
        running: Streams that are open now.
    """

    name = "scripted"
    starts_at_once = True
    models = (Model("scripted", 1000, 1000),)
    state = BackendState()

    def __init__(
        self, script: Sequence[Step], *, refuse: Exception | None = None, wait: float = 0, clean_up: float = 0
    ) -> None:
        self.requests: list[CompletionRequest] = []
        self.running = 0
        self._script = script
        self._refuse = refuse
        self._wait = wait
        self._clean_up = clean_up

    def resolve(self, model: str) -> str | None:
        """Serve any model."""
        return model

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Run the script.

        Cancellation: at once, but for the shielded ``clean_up``.
        """
        self.requests.append(request)
        if self._refuse is not None:
            raise self._refuse
        if self._wait:
            await trio.sleep(self._wait)
        self.running += 1
        try:
            async with aclosing(self._batches()) as batches:
                yield batches
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(self._clean_up)
            self.running -= 1

    async def _batches(self) -> AsyncGenerator[Batch, None]:
        yield (Started(),)
        for step in self._script:
            match step:
                case Exception():
                    raise step
                case tuple():
                    yield step
                case seconds:
                    await trio.sleep(seconds)
