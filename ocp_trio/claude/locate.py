"""Find the ``claude`` program where its installers leave it."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["HOW_TO_INSTALL", "find_claude"]

HOW_TO_INSTALL = (
    "no `claude` program was found: install it with `npm install -g @anthropic-ai/claude-code`, "
    "or set CLAUDE_BIN to its path"
)
"""What an operator is told."""

SYSTEM_FOLDERS = ("/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/usr/bin")
"""Where a program for all users lies; a service may have been started without them on its path."""
_VERSIONED = (
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    ".fnm/node-versions/*/installation/bin",
    ".asdf/installs/nodejs/*/bin",
    ".local/share/mise/installs/node/*/bin",
)
"""Folders under HOME that version managers of Node make, one for each version."""


def _usual_folders(home: Path) -> Iterator[Path]:
    yield home / ".local/bin"
    yield home / ".claude/local"
    yield home / ".claude/local/node_modules/.bin"
    yield home / ".npm-global/bin"
    yield home / ".asdf/shims"
    yield home / ".volta/bin"
    for pattern in _VERSIONED:
        yield from sorted(home.glob(pattern), key=_numbers, reverse=True)


def _numbers(folder: Path) -> list[int]:
    """Return the numbers in a path: they put v9 before v20."""
    return [int(number) for number in re.findall(r"\d+", str(folder))]


def find_claude(environment: Mapping[str, str]) -> str | None:
    """Return the absolute path of the program; None if there is none.

    Args:
        environment: ``CLAUDE_BIN`` decides alone where it is set; then ``PATH``, then the usual places under ``HOME``.
    """
    path = environment.get("PATH", os.defpath)
    found: str | None
    if explicit := environment.get("CLAUDE_BIN"):
        found = shutil.which(explicit, path=path) or explicit
    else:
        home = Path(environment.get("HOME") or "/nonexistent")
        usual = os.pathsep.join([*map(str, _usual_folders(home)), *SYSTEM_FOLDERS])
        found = shutil.which("claude", path=path) or shutil.which("claude", path=usual)
    return str(Path(found).absolute()) if found else None
