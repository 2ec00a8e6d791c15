"""A service is written for its owner alone, and removed without a trace; no file of others is touched."""

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Done, run

from ocp_trio.cli.units import MARK, launchd_plist, systemd_unit

SECRET = 'it\'s $ecret `x` \\ "q" # no'
PROMPT = "two\nlines\tof Zoë"


class Shell:
    """A user's shell, with a HOME and a PATH of its own; the managers' programs are scripts that tell how they ran."""

    def __init__(self, folder: Path) -> None:
        self.home, self._bin = folder / "home", folder / "bin"
        self.home.mkdir()
        self._bin.mkdir()
        self._log = folder / "ran"

    def provide(self, program: str, *, status: int = 0) -> None:
        path = self._bin / program
        path.write_text(
            f'#!/bin/sh\necho {program} "$@" >> {shlex.quote(str(self._log))}\necho broken >&2\nexit {status}\n'
        )
        path.chmod(0o755)

    @property
    def ran(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    @property
    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*") if not path.is_dir())

    @property
    def environment(self) -> Path:
        return self.home / ".config/ocp-trio/environment"

    @property
    def unit(self) -> Path:
        return self.home / ".config/systemd/user/ocp-trio.service"

    def service(self, *arguments: str, **environment: str) -> Done:
        return run("service", *arguments, HOME=str(self.home), PATH=str(self._bin), **environment)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def sourced(path: Path) -> dict[str, str]:
    """Return what a POSIX shell makes of a file with settings."""
    script = 'set -a; . "$0"; exec /usr/bin/env -0'
    done = subprocess.run(["/bin/sh", "-c", script, str(path)], env={}, capture_output=True, text=True, check=True)
    return dict(line.partition("=")[::2] for line in done.stdout.split("\0") if line)


def test_it_writes_a_unit_and_the_settings_of_this_shell_for_its_owner_alone(shell: Shell) -> None:
    done = shell.service(
        "install",
        OCP_ADMIN_KEY=SECRET,
        CLAUDE_AUTH_MODE="multi",
        CLAUDE_SYSTEM_PROMPT=PROMPT,
        CLAUDE_CODE_OAUTH_TOKEN="made-up",
        OCP_CHILD_ENV="ANTHROPIC_BASE_URL",
        ANTHROPIC_BASE_URL="http://localhost:1",
        UNRELATED="x",
        CLAUDECODE="1",
    )

    assert done.status == 0
    assert shell.files == [".config/ocp-trio/environment", ".config/systemd/user/ocp-trio.service"]
    assert [path.stat().st_mode & 0o777 for path in (shell.environment, shell.environment.parent)] == [0o600, 0o700]
    unit = shell.unit.read_text()
    assert f'ExecStart=/usr/bin/env "{sys.executable}" "-m" "ocp_trio" "serve"\n' in unit
    assert f"EnvironmentFile={shell.environment}\n" in unit
    assert not {SECRET, "made-up", "multi"} & set(unit.replace("=", "\n").splitlines())
    kept = sourced(shell.environment)
    assert {name: kept.get(name) for name in ("OCP_ADMIN_KEY", "CLAUDE_SYSTEM_PROMPT", "ANTHROPIC_BASE_URL")} == {
        "OCP_ADMIN_KEY": SECRET,
        "CLAUDE_SYSTEM_PROMPT": PROMPT,
        "ANTHROPIC_BASE_URL": "http://localhost:1",
    }
    assert {"PATH", "CLAUDE_CODE_OAUTH_TOKEN"} < set(kept)
    assert not {"UNRELATED", "CLAUDECODE"} & set(kept)
    assert done.out.endswith(
        "\nNext:\n  systemctl --user daemon-reload\n  systemctl --user enable --now ocp-trio.service\n"
    )
    assert SECRET not in done.out + done.err
    assert shell.ran == []


def test_a_second_time_it_keeps_what_is_there_and_takes_what_is_set_anew(shell: Shell) -> None:
    shell.service("install", CLAUDE_TIMEOUT="1000", PROXY_API_KEY=SECRET)

    same = shell.service("install", "--json")
    other = shell.service("install", "--json", CLAUDE_TIMEOUT="2000")

    assert [each["state"] for each in same.json["files"]] == ["unchanged", "unchanged"]
    assert [each["state"] for each in other.json["files"]] == ["written", "unchanged"]
    kept = sourced(shell.environment)
    assert (kept["CLAUDE_TIMEOUT"], kept["PROXY_API_KEY"]) == ("2000", SECRET)


def test_paths_of_the_current_folder_become_absolute(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.home)

    shell.service("install", OCP_STORE="./store.db", CLAUDE_BIN="bin/claude", CLAUDE_MCP_CONFIG="redis://a/b")

    kept = sourced(shell.environment)
    assert (kept["OCP_STORE"], kept["CLAUDE_BIN"]) == (f"{shell.home}/store.db", f"{shell.home}/bin/claude")
    assert kept["CLAUDE_MCP_CONFIG"] == "redis://a/b"


def test_it_is_given_longer_to_end_than_the_server_takes(shell: Shell) -> None:
    shell.service("install", OCP_SHUTDOWN_GRACE="60000", CLAUDE_KILL_GRACE="2500")

    assert "\nTimeoutStopSec=78\n" in shell.unit.read_text()


def test_a_dry_run_shows_everything_but_secrets_and_writes_nothing(shell: Shell) -> None:
    done = shell.service("install", "--dry-run", OCP_ADMIN_KEY=SECRET, CLAUDE_CODE_OAUTH_TOKEN="made-up")
    as_json = shell.service("install", "--dry-run", "--json")

    assert done.status == 0
    assert "[Service]" in done.out
    assert "OCP_ADMIN_KEY='…'\n" in done.out
    assert not {"made-up", SECRET} & set(done.out.replace("=", "\n").splitlines())
    assert [each["state"] for each in as_json.json["files"]] == ["to be written"] * 2
    assert shell.files == []


def test_now_starts_it_or_starts_it_again(shell: Shell) -> None:
    shell.provide("systemctl")

    done = shell.service("install", "--now", "--json")

    commands = ["daemon-reload", "enable ocp-trio.service", "restart ocp-trio.service"]
    assert shell.ran == done.json["ran"] == [f"systemctl --user {each}" for each in commands]
    assert done.json["next"] == []


def test_what_fails_of_starting_it_is_said_with_its_reason(shell: Shell) -> None:
    missing = shell.service("install", "--now")
    shell.provide("systemctl", status=1)
    failing = shell.service("install", "--now")

    assert missing.status == failing.status == 1
    assert missing.err == (
        "ocp-trio: there is no systemctl here to run `systemctl --user daemon-reload` with; the files are in place\n"
    )
    assert failing.err == "ocp-trio: `systemctl --user daemon-reload` failed: broken\n"
    assert shell.ran == ["systemctl --user daemon-reload"]


def test_uninstall_removes_what_install_wrote_and_what_enabling_left(shell: Shell) -> None:
    shell.service("install")
    wanted = shell.unit.parent / "default.target.wants" / shell.unit.name
    wanted.parent.mkdir()
    wanted.symlink_to(shell.unit)
    (shell.unit.parent / "other.service").write_text("")

    done = shell.service("uninstall")
    again = shell.service("uninstall", "--json")

    assert shell.files == [".config/systemd/user/other.service"]
    assert not shell.environment.parent.exists()
    assert not wanted.is_symlink()
    assert done.out == (
        f"removed   {shell.unit}\nremoved   {shell.environment}\n\n"
        "Next:\n  systemctl --user stop ocp-trio.service\n  systemctl --user daemon-reload\n"
    )
    assert again.json == {"files": [], "next": [], "ran": []}


def test_uninstall_now_stops_it_before_its_unit_is_gone(shell: Shell) -> None:
    shell.provide("systemctl")
    shell.service("install")

    done = shell.service("uninstall", "--now")

    assert shell.ran == ["systemctl --user disable --now ocp-trio.service", "systemctl --user daemon-reload"]
    assert "Next" not in done.out


@pytest.mark.parametrize("which", ["environment", "unit"])
def test_a_file_of_somebody_elses_is_neither_overwritten_nor_removed(which: str, shell: Shell) -> None:
    path: Path = getattr(shell, which)
    path.parent.mkdir(parents=True)
    path.write_text("PATH=/mine\n")

    for command in ("install", "uninstall"):
        done = shell.service(command)

        message = f"ocp-trio: {path} was not written by `ocp-trio service install`: move it away first\n"
        assert (done.status, done.err) == (1, message)
    assert path.read_text() == "PATH=/mine\n"


@pytest.mark.parametrize("text", ["A='b", "export A=b", "=b"])
def test_settings_that_were_edited_into_nonsense_are_left_for_their_owner(text: str, shell: Shell) -> None:
    shell.service("install")
    edited = f"# {MARK}\n{text}\n"
    shell.environment.write_text(edited)

    done = shell.service("install")

    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(f"ocp-trio: {shell.environment} cannot be read (")
    assert shell.environment.read_text() == edited


def test_a_service_that_could_not_start_is_not_written(shell: Shell) -> None:
    wrong = shell.service("install", CLAUDE_TIMEOUT="soon")
    unfit = shell.service("install", CLAUDE_SYSTEM_PROMPT="a\x1b[31m")

    assert wrong == (2, "", "ocp-trio: CLAUDE_TIMEOUT='soon': a whole number is expected\n")
    assert (unfit.status, unfit.out) == (2, "")
    assert "CLAUDE_SYSTEM_PROMPT holds a control character" in unfit.err
    assert shell.files == []


def test_a_folder_that_cannot_be_written_is_named(shell: Shell) -> None:
    (shell.home / ".config").write_text("a file")

    done = shell.service("install")

    assert done == (1, "", f"ocp-trio: {shell.environment} cannot be written: Not a directory\n")


def test_systemd_reads_the_unit_without_a_complaint(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        assert os.environ.get("OCP_REQUIRE_SYSTEMD", "0") == "0", "systemd-analyze is not installed"
        pytest.skip("systemd-analyze is not installed")
    odd = tmp_path / 'odd % $x "q" \\'
    odd.mkdir()
    program = odd / "python"
    program.symlink_to(sys.executable)
    unit = tmp_path / "ocp-trio.service"
    unit.write_text(systemd_unit([str(program), "-m", "ocp_trio", "serve"], odd / "environment", 27))

    done = subprocess.run(
        [analyze, "verify", "--user", str(unit)],
        env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_launchds_agent_starts_the_server_with_its_settings_and_none_of_them_in_it(
    shell: Shell, tmp_path: Path
) -> None:
    shell.provide("launchctl")

    done = shell.service("install", "--manager", "launchd", "--now", OCP_ADMIN_KEY=SECRET)

    path = shell.home / "Library/LaunchAgents/ocp-trio.plist"
    agent = plistlib.loads(path.read_bytes())
    assert done.status == 0
    assert agent["Label"] == "ocp-trio"
    assert agent["ProgramArguments"][-4:] == [sys.executable, "-m", "ocp_trio", "serve"]
    assert SECRET not in path.read_text()
    assert shell.ran[0] == f"launchctl bootstrap gui/{os.getuid()} {path}"
    assert shell.service("uninstall", "--manager", "launchd").status == 0
    assert shell.files == []


def test_what_launchd_starts_has_the_settings_of_the_file(tmp_path: Path) -> None:
    settings = tmp_path / "odd $x's"
    settings.write_text("CLAUDE_TIMEOUT='a b'\n")
    text = launchd_plist(["/bin/sh", "-c", 'printf "$CLAUDE_TIMEOUT"'], settings, 30, tmp_path / "log")

    agent = plistlib.loads(text.encode())

    done = subprocess.run(agent["ProgramArguments"], env={}, capture_output=True, text=True, check=True)
    assert done.stdout == "a b"
