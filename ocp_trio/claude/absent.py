"""Stand in for the CLI where there is none, and say so to whoever asks for one of its models."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ocp_trio.backend_state import BackendState, Login
from ocp_trio.claude.locate import HOW_TO_INSTALL
from ocp_trio.claude.models import Catalogue
from ocp_trio.completion import Batch, CompletionRequest, Model
from ocp_trio.errors import BackendUnavailableError

__all__ = ["AbsentClaude"]


class AbsentClaude:
    """Knows the names of the models, serves none."""

    name: Final = "claude"
    starts_at_once: Final = True
    models: tuple[Model, ...] = ()
    state = BackendState(login=Login(ok=False, outcome="no_program"))

    def resolve(self, model: str) -> str | None:
        """Return the id of a model by its name or alias; None if it cannot be a Claude model."""
        return Catalogue().resolve(model)

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        """Refuse.

        Raises:
            BackendUnavailableError: always; the message says how to install the CLI.
        """
        raise BackendUnavailableError(f"{request.model} is not served here: {HOW_TO_INSTALL}")
        yield  # pragma: no cover (makes this a generator)
