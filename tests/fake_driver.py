"""Run `fake_claude` from a test: what to write to it, how to read it, and the shape of its lines."""

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import trio

ARGV = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
ARGV += ["--include-partial-messages", "--tools", "", "--disable-slash-commands"]

Json: TypeAlias = dict[str, Any]
Shape: TypeAlias = tuple[str, str | None, frozenset[str]]


def user(content: object, **fields: object) -> Json:
    return {"type": "user", "message": {"role": "user", "content": content}, **fields}


def assistant(content: str) -> Json:
    message = {"role": "assistant", "content": [{"type": "text", "text": content}]}
    return {"type": "assistant", "message": message}


def control(subtype: str, **fields: object) -> Json:
    return {"type": "control_request", "request_id": "r1", "request": {"subtype": subtype, **fields}}


def run(
    program: Path, *messages: Json | bytes, argv: list[str] = ARGV, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the program to its end with ``messages`` as the whole of its standard input."""
    written = b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
    home = {"HOME": str(program.parent), **(env or {})}
    return subprocess.run([program, *argv], input=written, env=home, capture_output=True, timeout=20, check=False)


class Child:
    """A running program that a test talks to."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin
        assert process.stdout
        self.process = process
        self.stdin = process.stdin
        self._stdout = process.stdout
        self._read = b""

    async def close_stdout(self) -> None:
        await self._stdout.aclose()

    async def send(self, *messages: Json) -> None:
        for message in messages:
            await self.stdin.send_all(json.dumps(message).encode() + b"\n")

    async def line(self) -> Json | None:
        """Return the next line; None at the end of the output."""
        while b"\n" not in self._read:
            chunk = await self._stdout.receive_some()
            if not chunk:
                return None
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        value: Json = json.loads(line)
        return value

    async def shapes(self, count: int | None = None) -> "list[Shape]":
        """Return the shapes of the next ``count`` lines, or of all up to the end."""
        shapes: list[Shape] = []
        while len(shapes) != count and (line := await self.line()) is not None:
            shapes.append(shape(line))
        return shapes

    async def lines(self, until: str | None = None) -> list[Json]:
        """Return the lines up to the first of type, subtype or event type ``until``, or up to the end."""
        lines: list[Json] = []
        while (line := await self.line()) is not None:
            lines.append(line)
            if until and until in {line["type"], kind(line)}:
                break
        return lines


@asynccontextmanager
async def running(program: Path) -> AsyncIterator[Child]:
    """Run the program in a session of its own for the length of a block; its end kills it."""
    pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = await trio.lowlevel.open_process(
        [program, *ARGV], **pipes, env={"HOME": str(program.parent)}, start_new_session=True
    )
    child = Child(process)
    try:
        yield child
    finally:
        process.kill()
        with trio.CancelScope(shield=True):  # it has been killed: nothing here waits long
            await process.wait()
            await child.stdin.aclose()
            await child.close_stdout()


def kind(line: Json) -> str | None:
    """Return subtype or event type."""
    name: str | None = line.get("subtype") or line.get("event", {}).get("type")
    return name


def key_paths(value: object, path: str = "") -> Iterator[str]:
    """Yield the path of every key; the models' names in usage by model count as one."""
    if isinstance(value, list):
        for item in value:
            yield from key_paths(item, f"{path}[]")
    if isinstance(value, dict):
        for key, item in value.items():
            name = "MODEL" if path in {"/modelUsage", "/model_usage_since_last_result"} else key
            yield f"{path}/{name}"
            yield from key_paths(item, f"{path}/{name}")


def shape(line: Json) -> Shape:
    return (line["type"], kind(line), frozenset(key_paths(line)))


def shapes(output: bytes) -> list[Shape]:
    return [shape(json.loads(line)) for line in output.splitlines()]
