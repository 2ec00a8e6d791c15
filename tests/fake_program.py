"""Install `fake_claude` as a program, and read what its runs recorded."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_script import Step


def install(folder: Path, *, startup: Sequence[Step] = ()) -> Path:
    """Write the program into ``folder`` and return its path.

    Every run of it takes the steps of ``startup`` before it reads its first line, deaf to whatever is written to it.
    """
    records_folder = folder / "records"
    records_folder.mkdir(parents=True, exist_ok=True)
    program = folder / "claude"
    code = [
        f"#!{sys.executable} -SE",
        "import sys",
        f"sys.path[0] = {str(Path(__file__).parent)!r}",
        "import fake_claude",
        f"fake_claude.main({str(records_folder)!r}, {list(startup)!r})",
    ]
    program.write_text("\n".join(code) + "\n")
    program.chmod(0o755)
    return program


LISTS = {
    "stdin": "stdin",
    "query": "queries",
    "grandchild": "grandchildren",
    "signal": "signals",
    "mark": "marks",
}


@dataclass
class Record:
    """What one run saw, as far as it has come."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    pid: int
    ppid: int
    pgid: int
    sid: int
    stdin: list[str] = field(default_factory=list)
    """Lines as they came."""
    saw_eof: bool = False
    queries: list[list[list[Any]]] = field(default_factory=list)
    """For each question: the conversation as the API would get it, as [role, content]; one entry for each line."""
    grandchildren: list[int] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    exit_status: int | None = None
    """None if it has not ended by itself."""

    @property
    def controls(self) -> list[dict[str, Any]]:
        """The control requests, in order."""
        said = [json.loads(line) for line in self.stdin]
        return [message["request"] for message in said if message["type"] == "control_request"]


def records(folder: Path) -> list[Record]:
    """Return the conversations begun by the program in ``folder``, in order; `--version` and the like are none."""
    return [record for path in sorted((folder / "records").iterdir()) if (record := _read(path))]


def _read(path: Path) -> Record | None:
    record = None
    for entry in path.read_text().splitlines(keepends=True):
        if not entry.endswith("\n"):
            break
        kind, value = json.loads(entry)
        if kind == "start":
            record = Record(**value)
        assert record
        if kind in LISTS:
            getattr(record, LISTS[kind]).append(value)
        elif kind == "eof":
            record.saw_eof = True
        elif kind == "exit":
            record.exit_status = value
    return record
