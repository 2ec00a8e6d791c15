"""Start the server as a person does, in a process of its own, and look at it from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import raw_client
import trio
from raw_client import CHAT, Json, RawClient, open_client
from watching import processes_with, wait_for, wait_gone

from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["HYPERCORN", "INSTALLED", "LIMIT", "MODULE", "Server", "open_server", "shared_server"]

_BIN = Path(sys.executable).parent
MODULE = (sys.executable, "-m", "ocp_trio", "serve")
INSTALLED = (str(_BIN / "ocp-trio"), "serve")
HYPERCORN = (
    str(_BIN / "hypercorn"), "--worker-class", "trio", "--bind", "127.0.0.1:0", "ocp_trio.asgi:app"
)  # fmt: skip
"""The three ways to start it."""

LIMIT = 60
"""Seconds that a test with a server may take; on an idle machine it is a few."""
STOP = 15
"""Seconds that a server may take to end, and what it has started after it."""

_LISTENS = re.compile(r"(?:listens|Running) on http://\S+:(\d+)")


class Server:
    """A server process; made by `open_server` or `shared_server`.

    Attributes:
        home: Its HOME.
        temporary: Its TMPDIR.
    """

    def __init__(self, folder: Path, command: Sequence[str], settings: Mapping[str, str | None]) -> None:
        self.home, self.temporary, logs = (folder / name for name in ("home", "tmp", "log"))
        for each in (self.home, self.temporary, logs):
            each.mkdir()
        own = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "CLAUDE_PROXY_PORT": "0",
            "CLAUDE_KILL_GRACE": "300",
            "OCP_SHUTDOWN_GRACE": "0",
            # A child for each request and no other, unless a test is about those that wait.
            "CLAUDE_WARM_POOL": "0",
            "CLAUDE_WARM_CONVERSATIONS": "0",
        }
        self._log = logs / "output"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                list(command),
                env={name: value for name, value in {**own, **settings}.items() if value is not None},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        listens = _LISTENS.search(self.output())
        assert listens, self.output()
        return int(listens[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def output(self) -> str:
        """Return what it has printed so far, standard output and error alike."""
        return self._log.read_text()

    def logged(self, event: str, **fields: Json) -> list[dict[str, Json]]:
        """Return the log entries of one event, if need be those with certain fields."""
        lines = [line for line in self.output().splitlines() if line.startswith("{") and line.endswith("}")]
        return [entry for entry in map(json.loads, lines) if {"event": event, **fields}.items() <= entry.items()]

    async def wait_logged(self, event: str, count: int = 1, **fields: Json) -> list[dict[str, Json]]:
        """Return the log entries of one event as soon as there are ``count``."""
        return await wait_for(self._log.parent, lambda: (found := self.logged(event, **fields))[count - 1 :] and found)

    async def wait_listening(self) -> None:
        """Wait until it listens; one that ends instead is an error."""

        async def fail_at_exit() -> None:
            status = await self.wait()
            raise AssertionError(f"the server ended with status {status}: {self.output()}")

        with trio.fail_after(LIMIT), unwrap_lone_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail_at_exit)
                await wait_for(self._log.parent, lambda: _LISTENS.search(self.output()))
                nursery.cancel_scope.cancel()

    async def wait_idle(self) -> None:
        """Wait until every completion that has begun has ended, its child reaped."""
        begun, ended = "request_start", "request_end"
        await wait_for(self._log.parent, lambda: len(self.logged(begun)) == len(self.logged(ended)))

    async def wait(self) -> int:
        """Wait until it ends, and return its exit status."""
        await wait_gone(self.pid)
        return self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def get(self, path: str, **headers: str) -> Json:
        """Return the JSON that it serves at ``path``."""
        return await raw_client.get(self.port, path, **headers)

    async def stats(self) -> dict[str, int]:
        """Return the counters of /health."""
        stats: dict[str, int] = (await self.get("/health"))["stats"]
        return stats

    @asynccontextmanager
    async def chat(
        self, content: str, *, headers: Mapping[str, str] | None = None, receive_buffer: int | None = None, **body: Json
    ) -> AsyncIterator[RawClient]:
        """Ask for a completion, and leave at the end of the block."""
        request = {"model": "sonnet", "messages": [{"role": "user", "content": content}], **body}
        async with open_client(self.port, receive_buffer=receive_buffer) as client:
            await client.ask("POST", CHAT, request, **(headers or {}))
            yield client

    async def stop(self) -> None:
        """End it and whatever it has left behind, by force if need be; what was left behind is an error.

        Cancellation: shielded, for a few times `STOP` seconds at most.
        """
        with trio.CancelScope(shield=True):
            if self._process.poll() is None:
                self._process.terminate()
                with trio.move_on_after(STOP):
                    await self.wait()
            self._process.kill()
            self._process.wait()
            left = [pid for pid in processes_with("TMPDIR", str(self.temporary)) if not await _ends(pid)]
        assert left == [], "the server left processes behind"


async def _ends(pid: int) -> bool:
    """Return whether a process ends by itself; one that does not is killed."""
    with trio.move_on_after(STOP):
        await wait_gone(pid)
        return True
    os.kill(pid, signal.SIGKILL)
    return False


def _settings(claude_bin: Path | None, settings: Mapping[str, str | None]) -> Mapping[str, str | None]:
    return {**settings, "CLAUDE_BIN": str(claude_bin)} if claude_bin else settings


@asynccontextmanager
async def open_server(
    claude_bin: Path | None = None, *, command: Sequence[str] = MODULE, listening: bool = True, **settings: str | None
) -> AsyncIterator[Server]:
    """Run a server for the length of a block, in an environment of its own; the block may take `LIMIT` seconds.

    Args:
        claude_bin: The CLI; None leaves it to the server to find one.
        command: How it is started.
        listening: Wait until it listens.
        settings: Its environment, beside HOME, TMPDIR, a PATH, a free port and short times; None takes one of those
            away.

    Cancellation: leaving the block ends the server, and whatever it has left behind.
    """
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), command, _settings(claude_bin, settings))
        try:
            with trio.fail_after(LIMIT):
                if listening:
                    await server.wait_listening()
                yield server
        finally:
            await server.stop()
            # Shown where the test fails.
            sys.stdout.write(server.output())


@contextmanager
def shared_server(claude_bin: Path, **settings: str) -> Iterator[Server]:
    """Run a server for several tests, each with an event loop of its own."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), MODULE, _settings(claude_bin, settings))
        try:
            trio.run(server.wait_listening)
            yield server
        finally:
            trio.run(server.stop)
