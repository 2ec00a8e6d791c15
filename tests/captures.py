"""Read what the real `claude` 2.1.332 printed, recorded against a mock of its API, from captures.tar.xz."""

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).parent / "captures.tar.xz"


@cache
def _members() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


def names() -> list[str]:
    """Return the captures' names, sorted; most say in words what happened."""
    return sorted(name.removesuffix(".stdout.ndjson") for name in _members() if name.endswith(".stdout.ndjson"))


def stdout(name: str) -> bytes:
    """Return what the CLI printed, byte for byte (paths and ids made neutral)."""
    return _members()[f"{name}.stdout.ndjson"]


def stderr(name: str) -> str:
    """Return what the CLI wrote to standard error; the empty string if nothing."""
    return _members().get(f"{name}.stderr.txt", b"").decode()


def meta(name: str) -> dict[str, Any]:
    """Return argv, environment, exit_code, line_times_s and api_requests; empty for the two captures without."""
    value: dict[str, Any] = json.loads(_members().get(f"{name}.meta.json", b"{}"))
    return value
