"""The pinned CLI is installed once, whole, and without touching HOME."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import real_cli

NAME = f"claude-{real_cli.VERSION}"
FAKE_NPM = """#!/bin/sh
echo "npm HOME=$HOME $*" >> "$LOG"
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/@anthropic-ai/claude-code/bin"
"""
FAKE_NODE = """#!/bin/sh
echo "node $*" >> "$LOG"
printf '#!/bin/sh\\necho "%s (Claude Code)"\\n' "$FAKE_VERSION" > "${1%install.cjs}bin/claude.exe"
chmod +x "${1%install.cjs}bin/claude.exe"
"""


class Machine:
    """A machine with a HOME, a PATH and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.path, self.cache, self.log = (folder / name for name in ("home", "path", "cache", "log"))
        self.executable = self.cache / NAME / "node_modules/@anthropic-ai/claude-code/bin/claude.exe"
        self.home.mkdir()
        self.path.mkdir()
        for name, text in (("npm", FAKE_NPM), ("node", FAKE_NODE)):
            (self.path / name).write_text(text)
            (self.path / name).chmod(0o755)

    def begin_install(self, *, version: str = real_cli.VERSION, path: str | None = None) -> subprocess.Popen[str]:
        env = {
            "HOME": str(self.home),
            "PATH": path or f"{self.path}{os.pathsep}{os.defpath}",
            "OCP_TEST_CACHE": str(self.cache),
            "FAKE_VERSION": version,
            "LOG": str(self.log),
        }
        return subprocess.Popen(
            [sys.executable, real_cli.__file__, "install"], env=env, stdout=subprocess.PIPE, text=True
        )

    def install(self, **how: str) -> tuple[int, list[str]]:
        """Return the exit status and the lines of output."""
        with self.begin_install(**how) as process:
            output, _ = process.communicate(timeout=30)
        return process.returncode, output.splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_it_says_in_one_line_what_it_installs_and_where(machine: Machine) -> None:
    assert machine.install() == (0, [f"installing claude {real_cli.VERSION} into {machine.cache}"])

    assert machine.executable.is_file()
    assert sorted(path.name for path in machine.cache.iterdir()) == [NAME, f"{NAME}.lock"]


def test_npm_has_another_home_but_the_same_configuration(machine: Machine) -> None:
    machine.install()

    npm = machine.log.read_text().splitlines()[0]
    assert f"HOME={machine.home} " not in npm
    assert f"--userconfig {machine.home}/.npmrc" in npm
    assert f"@anthropic-ai/claude-code@{real_cli.VERSION}" in npm
    assert list(machine.home.iterdir()) == []


def test_a_second_run_installs_nothing(machine: Machine) -> None:
    machine.install()
    machine.log.unlink()

    assert machine.install() == (0, [f"claude {real_cli.VERSION} is there: {machine.cache / NAME}"])

    assert not machine.log.exists()


def test_two_at_once_install_it_once(machine: Machine) -> None:
    with machine.begin_install() as one, machine.begin_install() as other:
        one.communicate(timeout=30)
        other.communicate(timeout=30)

    assert (one.returncode, other.returncode) == (0, 0)
    assert [line.split()[0] for line in machine.log.read_text().splitlines()] == ["npm", "node"]


def test_another_version_is_not_kept(machine: Machine) -> None:
    status, lines = machine.install(version="2.1.197")

    assert status == 1
    assert lines[1] == (
        f"claude {real_cli.VERSION} could not be installed: what npm installed says it is '2.1.197 (Claude Code)'"
    )
    assert not machine.executable.exists()


def test_a_machine_without_npm_is_told_so(machine: Machine) -> None:
    status, lines = machine.install(path=str(machine.home))

    assert status == 1
    assert lines[1] == (f"claude {real_cli.VERSION} could not be installed: this machine has no npm, which installs it")


def test_a_failing_npm_is_quoted_in_one_line(machine: Machine) -> None:
    (machine.path / "npm").write_text(
        "#!/bin/sh\necho 'npm error code E404' >&2\necho 'npm error 404 gone' >&2\nexit 1\n"
    )

    status, lines = machine.install()

    assert status == 1
    assert lines[1].endswith("could not be installed: npm ended with status 1: npm error code E404; npm error 404 gone")
    assert [path.name for path in machine.cache.iterdir()] == [f"{NAME}.lock"]


def test_a_run_needs_nothing_of_the_real_environment(tmp_path: Path) -> None:
    environment = real_cli.environment(tmp_path, "http://127.0.0.1:1")

    assert (environment["HOME"], environment["TMPDIR"]) == (str(tmp_path), str(tmp_path))
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["DISABLE_TELEMETRY"] == environment["DISABLE_AUTOUPDATER"] == "1"
