"""What `ocp-trio doctor` looks at, one function for each thing."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import trio

from ocp_trio.claude import find_claude
from ocp_trio.claude.program import read_login
from ocp_trio.claude.version import OLDEST, read_version
from ocp_trio.cli.address import own_address
from ocp_trio.cli.api import open_api
from ocp_trio.cli.failures import Failure
from ocp_trio.cli.status import Health
from ocp_trio.cli.target import Target
from ocp_trio.errors import OcpError, SettingError
from ocp_trio.listener import listen
from ocp_trio.settings import Settings
from ocp_trio.store import open_store
from ocp_trio.store.sqlite_schema import sqlite_path
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = [
    "TESTED",
    "Finding",
    "check_claude",
    "check_folder",
    "check_login",
    "check_port",
    "check_python",
    "check_settings",
    "check_store",
    "check_version",
]

OLDEST_PYTHON: Final = (3, 11)
TESTED: Final = (2, 1, 332)
"""The version of the CLI that this server was tested with."""
INSTALL: Final = "npm install -g @anthropic-ai/claude-code"
LOGIN: Final = (
    "run `claude`, then /login, as the user who runs the server; or set CLAUDE_CODE_OAUTH_TOKEN to what "
    "`claude setup-token` prints"
)


class Finding(NamedTuple):
    """What a check has found."""

    name: str
    state: Literal["ok", "warning", "wrong"]
    found: str
    step: str | None = None
    """What to do next; None where nothing has to be done."""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def check_settings(environment: Mapping[str, str]) -> tuple[Settings | None, Finding]:
    """Read all settings; without them None."""
    try:
        settings = Settings.from_environment(environment)
    except SettingError as error:
        return None, Finding("settings", "wrong", str(error), f"correct {error.name}, or unset it")
    return settings, Finding("settings", "ok", f"{settings.bind} port {settings.port}, auth mode {settings.auth_mode}")


def check_python() -> Finding:
    """Look at the interpreter."""
    version = sys.version_info[:3]
    if version < OLDEST_PYTHON:
        step = f"install this server into Python {_dotted(OLDEST_PYTHON)} or newer"
        return Finding("python", "wrong", f"{_dotted(version)} is too old", step)
    return Finding("python", "ok", _dotted(version))


def check_claude(environment: Mapping[str, str]) -> tuple[str | None, Finding]:
    """Look for the CLI; without it None."""
    binary = find_claude(environment)
    if binary is None:
        # With another provider's key there is something to serve all the same.
        has_other = environment.get("OPENCODE_API_KEY") or environment.get("OPENCODE_ZEN_API_KEY")
        state: Literal["warning", "wrong"] = "warning" if has_other else "wrong"
        return None, Finding("claude", state, "not found", f"install it: `{INSTALL}`; or set CLAUDE_BIN to its path")
    if not os.access(binary, os.X_OK) or Path(binary).is_dir():
        return None, Finding("claude", "wrong", f"{binary} is no program", "set CLAUDE_BIN to the program, or unset it")
    return binary, Finding("claude", "ok", binary)


def check_version(binary: str, environment: Mapping[str, str]) -> Finding:
    """Ask the CLI for its version, in the environment that a child has."""
    version = trio.run(read_version, binary, environment)
    if version is None:
        return Finding("version", "wrong", "it does not tell its version", f"run `{binary} --version` to see why")
    if version < OLDEST:
        found = f"{_dotted(version)} is older than {_dotted(OLDEST)}"
        return Finding("version", "wrong", found, f"update it: `{INSTALL}`")
    return Finding("version", "ok", f"{_dotted(version)} (tested with {_dotted(TESTED)})")


def check_login(binary: str, environment: Mapping[str, str]) -> Finding:
    """Ask the CLI whether it is logged in, in the environment that a child has."""
    match trio.run(read_login, binary, environment):
        case "ok":
            return Finding("login", "ok", "logged in; whether upstream takes it, the first request tells")
        case "logged_out":
            return Finding("login", "wrong", "not logged in", LOGIN)
        case _:
            step = f"run `{binary} auth status` to see why"
            return Finding("login", "wrong", "it does not tell whether it is logged in", step)


def check_port(settings: Settings) -> Finding:
    """Try to listen where the server would, unless it does already."""
    where = f"{settings.bind} port {settings.port}"
    try:
        listen(settings).close()
    except SettingError as error:
        if error.name == "CLAUDE_BIND":
            return Finding("port", "wrong", str(error), "set CLAUDE_BIND to an address of this machine")
        if version := _running(settings):
            return Finding("port", "ok", f"a server of version {version} runs on {where}")
        return Finding("port", "wrong", str(error), "end what listens there, or set CLAUDE_PROXY_PORT to another port")
    return Finding("port", "ok", "any free one" if settings.port == 0 else f"{where} is free")


def _running(settings: Settings) -> str | None:
    """Return the version of this server where it runs already."""
    try:
        with open_api(Target(own_address(settings), None)) as api:
            return api.get("/health").read_as(Health).version
    except Failure:
        return None


def check_store(settings: Settings) -> Finding:
    """Open the store where there is one, as the server does; a file that is missing is not made."""
    if not settings.keeps_accounts:
        return Finding("store", "ok", "none is kept: CLAUDE_AUTH_MODE=multi turns it on")
    is_file = "://" not in settings.store
    path = sqlite_path(settings.store)
    if is_file and not path.exists():
        return _check_place("store", path)
    # Opening it takes that away.
    was_open = is_file and path.stat().st_mode & 0o077
    try:
        with unwrap_lone_error():
            trio.run(_ping, settings.store)
    except OcpError as error:
        step = f"look at {path}: who owns it, and is it a store?" if is_file else "is the Redis of OCP_STORE running?"
        return Finding("store", "wrong", str(error), step)
    if was_open:
        return Finding("store", "warning", f"others could read {path} until now; it takes writes")
    return Finding("store", "ok", f"{path} takes writes" if is_file else "the Redis of OCP_STORE takes writes")


async def _ping(where: str) -> None:
    async with open_store(where) as store:
        await store.ping()


def check_folder() -> Finding:
    """Look whether files can be kept in ``~/.ocp``."""
    return _check_place("folder", Path.home() / ".ocp" / "any")


def _check_place(name: str, path: Path) -> Finding:
    """Look whether a file could be made, without making it."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return Finding(name, "wrong", f"{folder} cannot be written", f"give this user a folder {path.parent}")
    if folder == path.parent:
        return Finding(name, "ok", f"{folder} can be written")
    return Finding(name, "ok", f"{path.parent} will be made when it is needed")
