"""The claude backend with the fake CLI, and what a test looks at."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fake_program
import trio
import watching
from fake_program import Record
from fake_script import Step, prompt
from msgspec.structs import replace

from ocp_trio.claude import ClaudeBackend, open_claude
from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    Message,
    Started,
    Text,
    TextDelta,
    TextEnd,
)

__all__ = ["FakeBackend", "ask", "open_fake", "request", "seen", "words"]

LIMIT = 20  # seconds, for anything that a child does


class FakeBackend:
    """An open backend.

    Attributes:
        backend: The backend.
        folder: Where the program lies and records its runs.
    """

    def __init__(self, backend: ClaudeBackend, folder: Path) -> None:
        self.backend = backend
        self.folder = folder

    def records(self) -> list[Record]:
        """Return what the children have seen so far."""
        return fake_program.records(self.folder)

    async def record(self, *, mark: str | None = None, index: int = 0) -> Record:
        """Return what child number ``index`` has seen, once it has come to ``mark``, or to its first question."""

        def look() -> Record | None:
            found = self.records()[index : index + 1]
            return next((run for run in found if (mark in run.marks if mark else run.queries)), None)

        record = await watching.wait_for(self.folder / "records", look)
        assert record is not None
        return record


@asynccontextmanager
async def open_fake(folder: Path, *, startup: Iterable[Step] = (), **options: Any) -> AsyncIterator[FakeBackend]:
    """Open the backend with the fake as its program, for at most `LIMIT` seconds.

    Args:
        folder: An empty one.
        startup: What every child does before it reads anything.
        options: Those of `open_claude`.
    """
    program = fake_program.install(folder, startup=tuple(startup))
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    with trio.fail_after(LIMIT):
        async with open_claude(str(program), environment=environment, **{"grace_period": 1.0, **options}) as backend:
            yield FakeBackend(backend, folder)


def request(*steps: Step, text: str = "hi", history: Iterable[Message] = (), **fields: Any) -> CompletionRequest:
    """Return a request whose child takes ``steps``."""
    last = Message("user", (Text(prompt(*steps, text=text)),))
    return CompletionRequest(model="claude-sonnet-4-6", messages=(*history, last), **fields)


async def collect(batches: AsyncIterator[Batch]) -> list[Event]:
    return [event async for batch in batches for event in batch]


async def ask(fake: FakeBackend, *steps: Step, **fields: Any) -> list[Event]:
    """Return all events of an answer."""
    async with fake.backend.stream(request(*steps, **fields)) as batches:
        return await collect(batches)


def seen(events: Iterable[Event]) -> list[object]:
    """Return what a client sees of the events: no cost, and errors as their class and message."""
    return [_seen(event) for event in events if not isinstance(event, Activity | Started | TextEnd)]


def _seen(event: Event) -> object:
    match event:
        case Failed(error):
            return type(error), str(error)
        case Completed(reason, usage):
            return Completed(reason, replace(usage, cost_usd=None))
        case _:
            return event


def words(events: Iterable[Event]) -> str:
    """Return the visible text."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))
