"""What systemd and launchd are told of the server."""

import plistlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["LABEL", "MARK", "launchd_plist", "systemd_unit"]

LABEL: Final = "ocp-trio"
"""What the service is called."""
MARK: Final = "Written by `ocp-trio service install`; `ocp-trio service uninstall` removes it."
"""Stands in every file of ours: no other is overwritten or removed."""
BAD_SETTING: Final = 2
"""Exit status of the server when a setting is wrong: starting it again would change nothing."""

_UNIT = """\
# {mark}
[Unit]
Description=OpenAI-compatible endpoint over the claude CLI
Documentation=https://github.com/ocp-trio/ocp-trio#readme
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=exec
ExecStart=/usr/bin/env {command}
EnvironmentFile={environment_file}
WorkingDirectory=%h
Restart=on-failure
RestartSec=2
RestartPreventExitStatus={bad_setting}
# The server ends its children itself, each request with an answer; only what is left after that is killed.
KillMode=mixed
TimeoutStopSec={stop_seconds}
# A child that runs out of memory fails its own request, not all others.
OOMPolicy=continue
# Nothing that needs namespaces or forbids writable code: children are programs of Node, with sandboxes of their own.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077

[Install]
WantedBy=default.target
"""


def systemd_unit(command: Sequence[str], environment_file: Path, stop_seconds: int) -> str:
    """Return a systemd user unit.

    Args:
        command: What serves; absolute.
        environment_file: Where its settings are.
        stop_seconds: How long it may take to end.
    """
    return _UNIT.format(
        mark=MARK,
        # Through env, since systemd takes no quotes or backslashes in the path of what it starts itself.
        command=" ".join(map(_quote, command)),
        # Taken to the end of its line: quotes would be part of the path.
        environment_file=str(environment_file).replace("%", "%%"),
        bad_setting=BAD_SETTING,
        stop_seconds=stop_seconds,
    )


def _quote(word: str) -> str:
    """Quote a word of a command as systemd reads it: escapes, specifiers and variables are plain text then."""
    for special, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("%", "%%"), ("$", "$$")):
        word = word.replace(special, escaped)
    return f'"{word}"'


def launchd_plist(command: Sequence[str], environment_file: Path, stop_seconds: int, log: Path) -> str:
    """Return a launchd agent; as `systemd_unit`, and ``log`` takes what the server prints."""
    # launchd reads no environment files, and its own variables would stand in a file that everybody may read.
    script = 'set -a; . "$0"; exec "$@"'
    agent = {
        "Label": LABEL,
        "ProgramArguments": ["/bin/sh", "-c", script, str(environment_file), *command],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": stop_seconds,
        "AbandonProcessGroup": False,
        "ProcessType": "Interactive",
        "Umask": 0o077,
        "StandardOutPath": str(log),
        "StandardErrorPath": str(log),
    }
    head, opening, rest = plistlib.dumps(agent, sort_keys=False).decode().partition("<plist ")
    return f"{head}<!-- {MARK} -->\n{opening}{rest}"
