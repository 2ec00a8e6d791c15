"""What produces a completion."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from ocp_trio.backend_state import BackendState
from ocp_trio.completion.events import Batch
from ocp_trio.completion.request import CompletionRequest

__all__ = [
    "Backend",
    "Model",
]


class Model(msgspec.Struct, frozen=True):
    """A model that a backend serves: its id, window and longest answer in tokens (0: unknown), its other names.

    ``sampling`` names the fields of `Sampling` that it takes.
    """

    id: str
    context_window: int
    max_output: int
    aliases: tuple[str, ...] = ()
    sampling: tuple[str, ...] = ()


class Backend(Protocol):
    """What produces a completion.

    Errors before the first event leave `stream` (or the first iteration) as an `OcpError`; afterwards they arrive as
    `Failed`. Leaving the block ends whatever the request had started, within the backend's own stated bound.
    """

    @property
    def name(self) -> str:
        """Who owns the models, as clients are told."""
        ...

    @property
    def starts_at_once(self) -> bool:
        """Whether `Started` comes as soon as anything runs for a request: before it nothing has been spent."""
        ...

    @property
    def models(self) -> tuple[Model, ...]:
        """What is served."""
        ...

    @property
    def state(self) -> BackendState:
        """What it does now."""
        ...

    def resolve(self, model: str) -> str | None:
        """Return the id under which ``model`` is served here; None if it is not."""
        ...

    def stream(self, request: CompletionRequest) -> AbstractAsyncContextManager[AsyncIterator[Batch]]:
        """Open a stream of batches for the length of a block."""
        ...
