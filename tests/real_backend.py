"""The claude backend with the real CLI, against a mock of its API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import real_cli
import trio
from fake_backend import collect
from mock_anthropic import MockAnthropic, open_mock_anthropic
from raw_cli import require_cli
from scripted_server import RecordedRequest

from ocp_trio.claude import ClaudeBackend, open_claude
from ocp_trio.completion import CompletionRequest, Event, Message, Part, Text

__all__ = ["PASSED", "RealBackend", "assistant", "open_real", "request", "said", "user"]

Json: TypeAlias = dict[str, Any]

LIMIT = 60  # seconds, for anything that the real CLI does
PASSED = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CLAUDE_CODE_MAX_RETRIES")


def _message(role: Any, *parts: Part | str) -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


def user(*parts: Part | str) -> Message:
    return _message("user", *parts)


def assistant(*parts: Part | str) -> Message:
    return _message("assistant", *parts)


def request(*messages: Message, model: str = "claude-opus-5-5", **fields: Any) -> CompletionRequest:
    return CompletionRequest(model=model, messages=messages or (user("hi"),), **fields)


def said(recorded: RecordedRequest) -> list[tuple[str, list[Json]]]:
    """Return the conversation that the API was sent, without what the CLI adds of its own."""
    messages = [message for message in recorded.body["messages"] if message["role"] != "system"]
    return [(message["role"], [_bare(block) for block in message["content"]]) for message in messages]


def _bare(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}


class RealBackend:
    """An open backend, and the mock that its children talk to."""

    def __init__(self, backend: ClaudeBackend, mock: MockAnthropic) -> None:
        self.backend = backend
        self.mock = mock

    async def ask(self, asked: CompletionRequest) -> list[Event]:
        """Return all events of an answer."""
        async with self.backend.stream(asked) as batches:
            return await collect(batches)


@asynccontextmanager
async def open_real(home: Path, *, env: dict[str, str] | None = None, **options: Any) -> AsyncIterator[RealBackend]:
    """Open the backend with the pinned CLI and a mock of its API, for at most `LIMIT` seconds.

    Args:
        home: Temporary HOME.
        env: More of the environment that the child's is chosen from.
        options: Those of `open_claude`.
    """
    binary = str(require_cli())
    with trio.fail_after(LIMIT):
        async with open_mock_anthropic() as mock:
            environment = {**real_cli.environment(home, mock.url), **(env or {})}
            options = {"pass_environment": PASSED, **options}
            async with open_claude(binary, environment=environment, **options) as backend:
                yield RealBackend(backend, mock)
