"""A program that cannot be started is told plainly and leaves nothing behind."""

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from shell import ENV, OBEDIENT, open_shell
from watching import children, holdings

from ocp_trio.errors import ChildSpawnError
from ocp_trio.streaming import open_child_process


@pytest.mark.parametrize("program", ["missing", "not-executable", "folder"])
async def test_a_program_that_cannot_be_run_is_refused(tmp_path: Path, program: str) -> None:
    (tmp_path / "not-executable").touch()
    (tmp_path / "folder").mkdir()

    with pytest.raises(ChildSpawnError, match=r"^the program could not be started: it is missing or not executable$"):
        async with open_child_process([str(tmp_path / program)], env=ENV):
            pass


async def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ChildSpawnError, match=r"^the program could not be started: No such file or directory$"):
        async with open_shell("true", cwd=str(tmp_path / "missing")):
            pass


@pytest.mark.parametrize("allowed", range(4))
async def test_too_many_open_files_are_told_and_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    left = [allowed]

    def limited(function: Callable[..., Any], *arguments: int) -> Any:
        if not left[0]:
            raise OSError(errno.EMFILE, "too many")
        left[0] -= 1
        return function(*arguments)

    before = holdings(os.getpid())
    monkeypatch.setattr(os, "pipe", partial(limited, os.pipe))
    monkeypatch.setattr(os, "pidfd_open", partial(limited, os.pidfd_open))

    with pytest.raises(ChildSpawnError, match="Too many open files"):
        async with open_shell(OBEDIENT):
            pass

    assert holdings(os.getpid()) == before
    assert children(os.getpid()) == []
