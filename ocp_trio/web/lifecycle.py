"""Know which requests run, and bring them to an end when the server stops."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio
from trio_util import AsyncValue  # type: ignore[import-untyped]  # the package ships no py.typed

__all__ = ["Lifecycle"]


class Lifecycle:
    """What the server and its requests tell each other.

    Attributes:
        draining: The server takes no new requests.
        stopping: Set when running requests must end, with an error that says so.
        active: How many completions run.
    """

    def __init__(self) -> None:
        self.draining = False
        self.stopping = trio.Event()
        self.active = AsyncValue(0)

    @contextmanager
    def completion(self) -> Iterator[None]:
        """Count a completion as running for the length of a block."""
        self.active.value += 1
        try:
            yield
        finally:
            self.active.value -= 1

    async def drain(self, grace: float, end_within: float) -> None:
        """Refuse new requests, give running ones ``grace`` seconds, then end them.

        Cancellation: at once; requests are then ended by whoever cancels them.

        Args:
            grace: Seconds that running requests have to finish by themselves.
            end_within: Seconds that their ends may take after that.
        """
        self.draining = True
        with trio.move_on_after(grace):
            await self.active.wait_value(0)
        self.stopping.set()
        with trio.move_on_after(end_within):
            await self.active.wait_value(0)
