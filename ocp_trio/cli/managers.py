"""Where systemd and launchd look for a user's services, and how they are told to look."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ocp_trio.cli.failures import Failure
from ocp_trio.cli.screen import progress
from ocp_trio.cli.units import LABEL, launchd_plist, systemd_unit

__all__ = ["MANAGERS", "Manager", "run_all"]

PATIENCE: Final = 120
"""Seconds that a command of theirs may take: a restart waits for the server's grace periods."""

Command: TypeAlias = list[str]


@dataclass(frozen=True, kw_only=True)
class Manager:
    """What there is to know of a service manager."""

    environment_file: Path
    """Where the settings go."""
    unit_file: Path
    """Where the service's description goes."""
    describe: Callable[[Sequence[str], int], str]
    """Makes that of a command, and of the seconds that it may take to end."""
    start: list[Command]
    """What a person runs after both have been written."""
    restart: list[Command]
    """The same for a program, whether the service runs already or not."""
    stop: list[Command]
    """Stops the service for good, before its removal."""
    after_removal: list[Command]
    """What a person runs who has not stopped it."""
    reload: list[Command]
    """Makes its removal known."""
    link: Path | None
    """What starting it at login leaves beside the files."""
    hint: str
    """What else is good to know."""


def _environment_file(home: Path) -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config").absolute() / LABEL / "environment"


def _systemd(home: Path) -> Manager:
    settings, unit, systemctl = _environment_file(home), f"{LABEL}.service", ["systemctl", "--user"]
    folder = settings.parent.parent / "systemd/user"
    reload = [[*systemctl, "daemon-reload"]]
    return Manager(
        environment_file=settings,
        unit_file=folder / unit,
        describe=lambda command, stop_seconds: systemd_unit(command, settings, stop_seconds),
        start=[*reload, [*systemctl, "enable", "--now", unit]],
        restart=[*reload, [*systemctl, "enable", unit], [*systemctl, "restart", unit]],
        stop=[[*systemctl, "disable", "--now", unit]],
        after_removal=[[*systemctl, "stop", unit], *reload],
        reload=reload,
        link=folder / "default.target.wants" / unit,
        hint=f"`loginctl enable-linger` starts it without a login; `journalctl --user -u {LABEL} -f` shows its log.",
    )


def _launchd(home: Path) -> Manager:
    settings, domain = _environment_file(home), f"gui/{os.getuid()}"
    agent, log = home / f"Library/LaunchAgents/{LABEL}.plist", home / f"Library/Logs/{LABEL}.log"
    start, stop = ["launchctl", "bootstrap", domain, str(agent)], ["launchctl", "bootout", f"{domain}/{LABEL}"]
    return Manager(
        environment_file=settings,
        unit_file=agent,
        describe=lambda command, stop_seconds: launchd_plist(command, settings, stop_seconds, log),
        start=[start],
        restart=[start, ["launchctl", "kickstart", "-k", f"{domain}/{LABEL}"]],
        stop=[stop],
        after_removal=[stop],
        reload=[],
        link=None,
        hint=f"Its log is {log}.",
    )


MANAGERS: Final[Mapping[str, Callable[[Path], Manager]]] = {"systemd": _systemd, "launchd": _launchd}


def run_all(commands: list[Command]) -> list[Command]:
    """Run commands one after the other, and return them.

    Raises:
        Failure: one is missing, fails, or takes more than 120 seconds; those after it were not run.
    """
    for command in commands:
        line = " ".join(command)
        if shutil.which(command[0]) is None:
            raise Failure(f"there is no {command[0]} here to run `{line}` with; the files are in place")
        try:
            with progress(line):
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False
                )
        except subprocess.TimeoutExpired as error:
            raise Failure(f"`{line}` did not end within {PATIENCE} s") from error
        if done.returncode:
            raise Failure(f"`{line}` failed: {done.stderr.strip() or f'status {done.returncode}'}")
    return commands
