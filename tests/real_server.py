"""The whole server in front of the real CLI, and that one in front of a mock of its API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mock_anthropic import MockAnthropic, open_mock_anthropic
from raw_cli import require_cli
from raw_client import Json
from server_process import Server, open_server

__all__ = ["open_real_server"]


@asynccontextmanager
async def open_real_server(**settings: Json) -> AsyncIterator[tuple[Server, MockAnthropic]]:
    """Run the mock of the API, and a server whose children ask it, for the length of a block."""
    executable = require_cli()
    passed: dict[str, Json] = {"ANTHROPIC_API_KEY": "sk-ant-made-up", "CLAUDE_CODE_MAX_RETRIES": "0"}
    async with open_mock_anthropic() as mock:
        passed["ANTHROPIC_BASE_URL"] = mock.url
        async with open_server(executable, OCP_CHILD_ENV=",".join(passed), **passed, **settings) as server:
            yield server, mock
