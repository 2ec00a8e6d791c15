"""The program is found where its installers leave it."""

from pathlib import Path

import pytest

from ocp_trio.claude import locate
from ocp_trio.claude.locate import find_claude


def install(folder: Path, *, mode: int = 0o755) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(mode)
    return str(program)


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no program of this machine be found: only what lies in a test's own folder."""
    monkeypatch.setattr(locate, "SYSTEM_FOLDERS", ())


def test_the_path_comes_first(tmp_path: Path) -> None:
    install(tmp_path / "home/.local/bin")
    found = install(tmp_path / "bin")

    assert find_claude({"PATH": f"/nowhere:{tmp_path}/bin", "HOME": f"{tmp_path}/home"}) == found


@pytest.mark.parametrize(
    "folder",
    [
        ".local/bin",
        ".claude/local",
        ".claude/local/node_modules/.bin",
        ".npm-global/bin",
        ".nvm/versions/node/v22.1.0/bin",
        ".local/share/fnm/node-versions/v22.1.0/installation/bin",
        ".fnm/node-versions/v22.1.0/installation/bin",
        ".asdf/installs/nodejs/22.1.0/bin",
        ".asdf/shims",
        ".local/share/mise/installs/node/22.1.0/bin",
        ".volta/bin",
    ],
)
def test_the_usual_places_under_home_come_next(tmp_path: Path, folder: str) -> None:
    found = install(tmp_path / folder)

    assert find_claude({"PATH": "/nowhere", "HOME": str(tmp_path)}) == found


def test_the_usual_places_of_the_system_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = install(tmp_path / "bin")
    monkeypatch.setattr(locate, "SYSTEM_FOLDERS", ("/nowhere", f"{tmp_path}/bin"))

    assert find_claude({"PATH": "/nowhere"}) == found


def test_of_several_versions_of_node_the_newest_counts(tmp_path: Path) -> None:
    for version in ("v9.11.0", "v20.2.0", "v20.10.0"):
        install(tmp_path / f".nvm/versions/node/{version}/bin")

    assert find_claude({"HOME": str(tmp_path)}) == f"{tmp_path}/.nvm/versions/node/v20.10.0/bin/claude"


def test_what_is_not_executable_is_not_found(tmp_path: Path) -> None:
    install(tmp_path / ".local/bin", mode=0o644)
    (tmp_path / ".claude/local/claude").mkdir(parents=True)

    assert find_claude({"PATH": "/nowhere", "HOME": str(tmp_path)}) is None


def test_an_explicit_path_decides_alone(tmp_path: Path) -> None:
    install(tmp_path / "bin")
    other = install(tmp_path / "other")

    assert find_claude({"PATH": f"{tmp_path}/bin", "CLAUDE_BIN": other}) == other
    # Whether it exists is told when it is started, so that it may be installed later.
    missing = f"{tmp_path}/missing"
    assert find_claude({"PATH": f"{tmp_path}/bin", "CLAUDE_BIN": missing}) == missing


def test_an_explicit_name_is_looked_for_on_the_path(tmp_path: Path) -> None:
    found = install(tmp_path / "bin")

    assert find_claude({"PATH": f"{tmp_path}/bin", "CLAUDE_BIN": "claude"}) == found


def test_what_is_found_does_not_depend_on_where_we_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = install(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)

    assert find_claude({"PATH": "bin"}) == found
    assert find_claude({"CLAUDE_BIN": "bin/claude"}) == found


def test_nothing_is_found_without_home_and_path() -> None:
    assert find_claude({"PATH": "/nowhere"}) is None
    assert find_claude({"HOME": "", "PATH": "", "CLAUDE_BIN": ""}) is None
