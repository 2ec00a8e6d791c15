"""Drive the real CLI raw: JSON lines in, JSON lines out, nothing of ours between."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import real_cli
import trio

__all__ = [
    "LEAN",
    "Line",
    "RawCli",
    "assistant",
    "control",
    "deltas",
    "kind",
    "of_kind",
    "open_raw_cli",
    "require_cli",
    "user",
]

Line: TypeAlias = dict[str, Any]

LEAN = (
    *(
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ),
    *("--tools", "", "--system-prompt", "Be brief.", "--no-session-persistence", "--strict-mcp-config"),
    *("--setting-sources", "", "--disable-slash-commands"),
)


def require_cli() -> Path:
    """Return the pinned CLI; without it skip the test, or fail it where ``OCP_REQUIRE_REAL_CLI=1``."""
    if (executable := real_cli.find()) is not None:
        return executable
    reason = f"claude {real_cli.VERSION} is not installed (python tests/real_cli.py install)"
    if os.environ.get("OCP_REQUIRE_REAL_CLI") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def user(content: str | list[Line], **fields: object) -> Line:
    """Return a line with a user message whose text stays text."""
    return {"type": "user", "message": {"role": "user", "content": content}, "client_composed": True, **fields}


def assistant(content: str | list[Line]) -> Line:
    """Return a line with an earlier answer of the model."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"type": "assistant", "message": {"role": "assistant", "content": blocks}}


def control(request_id: str, subtype: str, **fields: object) -> Line:
    """Return a line of the control protocol."""
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}


def kind(line: Line) -> str:
    """Return the most telling name of a line's type: the API's event, the subtype of ``system``, or the type."""
    match line:
        case {"type": "stream_event", "event": {"type": str(name)}} | {"type": "system", "subtype": str(name)}:
            return name
    return str(line["type"])


def of_kind(lines: list[Line], name: str) -> list[Line]:
    """Return the lines of one kind."""
    return [line for line in lines if kind(line) == name]


def deltas(lines: list[Line]) -> list[str]:
    """Return the text of each delta, whatever it is a delta of."""
    return [
        next(text for key, text in line["event"]["delta"].items() if key != "type")
        for line in of_kind(lines, "content_block_delta")
    ]


class RawCli:
    """A running CLI."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._buffer = bytearray()

    async def write(self, *lines: Line) -> None:
        """Write ``lines`` in one go."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    async def close_stdin(self) -> None:
        """End the input."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def read(self) -> Line | None:
        """Return the next line; None at the end of the output."""
        assert self.process.stdout is not None
        while b"\n" not in self._buffer:
            if not (data := await self.process.stdout.receive_some()):
                return None
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        decoded: Line = json.loads(line)
        return decoded

    async def read_until(self, name: str) -> list[Line]:
        """Return the lines up to and with the first of kind ``name``, or to the end of the output."""
        lines = []
        while (line := await self.read()) is not None:
            lines.append(line)
            if kind(line) == name:
                break
        return lines

    async def ask(self, *lines: Line) -> list[Line]:
        """Write ``lines`` and return what is answered up to and with a ``result``."""
        await self.write(*lines)
        return await self.read_until("result")


@asynccontextmanager
async def open_raw_cli(
    executable: Path, url: str, home: Path, *, flags: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> AsyncIterator[RawCli]:
    """Run the CLI with the LEAN flags in an empty folder for the length of a block.

    Args:
        executable: The CLI.
        url: The mock of its API.
        home: Temporary HOME; its ``work`` becomes the working directory, its ``stderr`` takes what is written there.
        flags: More flags.
        env: More of the environment.

    Cancellation: leaving the block kills and reaps the CLI.
    """
    work = home / "work"
    work.mkdir(exist_ok=True)
    with (home / "stderr").open("wb") as stderr:
        process = await trio.lowlevel.open_process(
            [executable, *LEAN, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=work,
            env={**real_cli.environment(home, url), **(env or {})},
        )
    try:
        yield RawCli(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            # A killed process ends at once.
            await process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            await pipe.aclose()
