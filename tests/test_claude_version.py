"""The CLI's version is asked for, and a program that does not tell it is not waited for."""

import os
from pathlib import Path

import fake_program
import pytest
import trio

from ocp_trio.claude import version
from ocp_trio.claude.version import OLDEST, read_version


def program(folder: Path, script: str) -> str:
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def ask(binary: str) -> tuple[int, int, int] | None:
    with trio.fail_after(10):
        return await read_version(binary, {"PATH": os.defpath, "HOME": "/nonexistent"})


async def test_the_version_is_read(tmp_path: Path) -> None:
    assert await ask(str(fake_program.install(tmp_path))) == (2, 1, 332)


async def test_an_old_version_is_told_as_well(tmp_path: Path) -> None:
    found = await ask(program(tmp_path, "echo '1.0.9 (Claude Code)'"))

    assert found == (1, 0, 9)
    assert found < OLDEST


@pytest.mark.parametrize("script", ["exit 1", "echo hello", "echo 2.1; exit 3", "echo 2.1.332 >&2"])
async def test_a_program_that_tells_none_has_none(tmp_path: Path, script: str) -> None:
    assert await ask(program(tmp_path, script)) is None


async def test_a_missing_program_has_none(tmp_path: Path) -> None:
    assert await ask(str(tmp_path / "missing")) is None


async def test_a_program_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "PATIENCE", 0.05)

    assert await ask(program(tmp_path, "exec sleep 60")) is None


async def test_a_program_that_never_stops_talking_is_not_listened_to(tmp_path: Path) -> None:
    assert await ask(program(tmp_path, "exec yes")) is None
