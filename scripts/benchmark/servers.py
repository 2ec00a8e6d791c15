"""Servers to measure: ours, the bare floor, and any other that already runs somewhere."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from client import Client, MeasureError
from pieces import MODEL

__all__ = ["Opener", "Settings", "Subject", "open_floor", "open_ours", "open_url"]

PATIENCE = 10.0
"""Seconds that a server may take to end."""
PATH = "/v1/chat/completions"
GO_MODEL = "opencode-go/glm-5"
"""A model that is asked in the words that the floor answers in."""


@dataclass(frozen=True)
class Settings:
    """How a server is to be started: times in seconds, and what else its environment needs."""

    heartbeat: float = 0.0
    kill_grace: float = 5.0
    environment: Mapping[str, str] = field(default_factory=dict)
    over_http: bool = False
    """Whether answers come over HTTP, from a provider that is the bare floor, and not from a child."""


@dataclass(frozen=True)
class Subject:
    """A server under measurement.

    Attributes:
        pid: Its process; None if it is not one of this machine that may be looked at.
        alive: The FIFO that its fake children hold open while they live.
    """

    name: str
    address: tuple[str, int]
    path: str
    pid: int | None
    alive: Path
    model: str = MODEL

    def client(self) -> Client:
        """Make a client of it."""
        return Client(self.address, self.path, self.model)

    def cpu(self) -> float:
        """Return the processor's seconds that it has used, its children's not included; NaN if that is unknown."""
        if self.pid is None:
            return float("nan")
        # Nanoseconds per thread; /proc/PID/stat counts in steps of 10 ms.
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> float:
        """Return its resident set in KiB; NaN if that is unknown."""
        if self.pid is None:
            return float("nan")
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1024


Opener = Callable[[Settings], AbstractContextManager[Subject]]


@contextmanager
def _run(command: list[str], env: Mapping[str, str], errors: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a server for the length of a block, and return the URL that its first line ends with."""
    with errors.open("wb") as stderr:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode()
        if "http://" not in line:
            raise MeasureError(f"{command[1:4]} did not start: {errors.read_text()[-500:]}")
        yield process, line.split()[-1]
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _kill_group(process.pid)
        process.stdout.close()


def _kill_group(pgid: int) -> None:
    """Kill what a server has left behind in its session: the floor's children stay in it."""
    try:
        os.killpg(pgid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


def _served_by(upstream: Subject, settings: Settings) -> Settings:
    host, port = upstream.address
    provider = {"OPENCODE_API_KEY": "made-up", "OPENCODE_GO_BASE_URL": f"http://{host}:{port}"}
    return replace(settings, environment={**settings.environment, **provider}, over_http=False)


def open_ours(command: list[str], fake: Path, scratch: Path, provider: Opener) -> Opener:
    """Return what starts our server with a fake ``claude``, or with a ``provider`` in place of OpenCode Go."""

    @contextmanager
    def open_it(settings: Settings) -> Iterator[Subject]:
        if settings.over_http:
            with provider(settings) as upstream, open_it(_served_by(upstream, settings)) as subject:
                yield replace(subject, model=GO_MODEL)
            return
        home = scratch / "home"
        home.mkdir(exist_ok=True)
        environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "CLAUDE_BIN": str(fake),
            "CLAUDE_HEARTBEAT_INTERVAL": str(round(settings.heartbeat * 1000)),
            "CLAUDE_KILL_GRACE": str(round(settings.kill_grace * 1000)),
            "CLAUDE_MAX_CONCURRENT": "1000",
            "CLAUDE_WARM_CONVERSATIONS": "0",
            "CLAUDE_WARM_POOL": "0",
            "CLAUDE_PROXY_PORT": "0",
            "OCP_SHUTDOWN_GRACE": "0",
            **settings.environment,
        }
        with _run(command, environment, scratch / "ours.log") as (process, url):
            yield Subject("ours", _address(url), PATH, process.pid, fake.parent / "alive")

    return open_it


def open_floor(fake: Path, scratch: Path) -> Opener:
    """Return what starts the bare floor."""
    program = str(Path(__file__).with_name("floor.py"))

    @contextmanager
    def open_it(settings: Settings) -> Iterator[Subject]:
        times = [str(settings.heartbeat or "inf"), str(settings.kill_grace)]
        command = [sys.executable, program, str(fake), *times]
        with _run(command, os.environ, scratch / "floor.log") as (process, url):
            yield Subject("floor", _address(url), PATH, process.pid, fake.parent / "alive")

    return open_it


def open_url(name: str, url: str, fake: Path) -> Opener:
    """Return what measures a server that runs already; its settings are as they are."""

    @contextmanager
    def open_it(_: Settings) -> Iterator[Subject]:
        host, port = _address(url)
        path = urlsplit(url).path.rstrip("/")
        yield Subject(name, (host, port), path or PATH, _listener(port), fake.parent / "alive")

    return open_it


def _listener(port: int) -> int | None:
    """Return the process of this machine that listens on a port; None if it is not ours to see."""
    tables = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    sockets = {f"socket:[{row[9]}]" for row in tables if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(link.readlink()) in sockets:
                return int(link.parts[2])
        except OSError:
            continue
    return None
