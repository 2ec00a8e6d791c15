"""Write and remove files that are this program's own, and touch no others."""

import os
from pathlib import Path
from typing import Literal, NamedTuple

from ocp_trio.cli.failures import Failure
from ocp_trio.cli.units import LABEL, MARK

__all__ = ["OwnFile", "remove", "write"]


class OwnFile(NamedTuple):
    """A file, what it is to hold, and who may read it."""

    path: Path
    text: str
    mode: int


def write(file: OwnFile) -> Literal["written", "unchanged"]:
    """Write a file as a whole or not at all; its folder is made where it is missing.

    Raises:
        Failure: another file is in its place, or it cannot be written.
    """
    path = file.path
    try:
        if path.exists():
            _check(path)
            if path.read_text() == file.text and path.stat().st_mode & 0o777 == file.mode:
                return "unchanged"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        # Nobody else may read it, not even before it has its mode.
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(file.text)
            os.fchmod(stream.fileno(), file.mode)
        new.replace(path)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}") from error
    return "written"


def remove(path: Path) -> bool:
    """Remove a file, and its folder if nothing else is in it and it bears our name; return whether there was a file.

    Raises:
        Failure: another file is in its place, or it cannot be removed.
    """
    try:
        if not path.exists():
            return False
        _check(path)
        path.unlink()
        if path.parent.name == LABEL and not any(path.parent.iterdir()):
            path.parent.rmdir()
    except OSError as error:
        raise Failure(f"{path} cannot be removed: {error.strerror}") from error
    return True


def _check(path: Path) -> None:
    if not path.is_file() or MARK not in path.read_text(errors="replace"):
        raise Failure(f"{path} was not written by `ocp-trio service install`: move it away first")
