"""A backend that says something else each time that it is asked."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ocp_trio.completion import Batch, Completed, CompletionRequest, TextDelta, Usage
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

USAGE = Usage(input=10, output=5, cache_read=3, cache_write=2, reasoning=1)


class ScriptedAttempts(ScriptedBackend):
    """Serves its scripts one after another, the last one again and again.

    Attributes:
        overlapped: Whether a stream was opened while another one was open.
    """

    def __init__(self, *scripts: Sequence[Step], **options: Any) -> None:
        super().__init__(scripts[0], **options)
        self.overlapped = False
        self._scripts = scripts

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Run the next script."""
        self.overlapped = self.overlapped or self.running > 0
        self._script = self._scripts[min(len(self.requests), len(self._scripts) - 1)]
        async with super().stream(request) as batches:
            yield batches


def says(*words: str) -> list[Step]:
    """Return a script that says ``words``, one a batch, and is complete."""
    return [*((TextDelta(word),) for word in words), (Completed("stop", USAGE),)]
