"""What keeps a server from serving is found, each thing with the next step; where all is well, nothing is changed."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import fake_program
import pytest
import real_cli
import trio
from commands import Done, open_impostor, run
from server_process import INSTALLED, shared_server

from ocp_trio.cli.checks import TESTED
from ocp_trio.store import open_store

ALL = ["settings", "python", "claude", "version", "login", "port", "store", "folder"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """An empty home, which stays empty: that is checked."""
    home = tmp_path / "home"
    home.mkdir()
    yield home
    assert [path.name for path in home.iterdir() if path.name != ".ocp"] == []


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return fake_program.install(tmp_path)


def doctor(home: Path, program: Path | None, *arguments: str, **environment: str) -> Done:
    usual = {
        "HOME": str(home),
        "PATH": os.defpath,
        "CLAUDE_BIN": str(program or ""),
        "CLAUDE_CODE_OAUTH_TOKEN": "made-up",
        "CLAUDE_PROXY_PORT": "0",
    }
    return run("doctor", *arguments, **usual | environment)


def checked(done: Done) -> dict[str, tuple[str, str, str | None]]:
    """Return what JSON says of each check."""
    assert done.json["ok"] == (done.status == 0)
    return {each["name"]: (each["state"], each["found"], each["step"]) for each in done.json["checks"]}


def test_where_all_is_well_each_thing_is_a_line_and_nothing_is_made(home: Path, program: Path) -> None:
    done = doctor(home, program)

    lines = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert [line.split()[:2] for line in lines] == [["✓", name] for name in ALL]
    assert lines[3] == "✓ version  2.1.332 (tested with 2.1.332)"
    assert lines[5] == "✓ port     any free one"
    assert list(home.iterdir()) == []


def test_the_version_that_was_tested_is_the_one_that_the_tests_install() -> None:
    assert ".".join(map(str, TESTED)) == real_cli.VERSION


def test_a_wrong_setting_is_named_and_what_rests_on_no_setting_is_checked_all_the_same(
    home: Path, program: Path
) -> None:
    done = doctor(home, program, "--json", CLAUDE_TIMEOUT="soon")

    found = checked(done)
    assert done.status == 1
    assert found["settings"] == (
        "wrong",
        "CLAUDE_TIMEOUT='soon': a whole number is expected",
        "correct CLAUDE_TIMEOUT, or unset it",
    )
    assert list(found) == ["settings", "python", "claude", "version", "login", "folder"]


def test_without_the_cli_its_installation_is_the_next_step_unless_another_provider_serves(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocp_trio.claude.locate.SYSTEM_FOLDERS", ())
    step = "install it: `npm install -g @anthropic-ai/claude-code`; or set CLAUDE_BIN to its path"

    done = doctor(home, None, "--json", PATH=str(home))
    lines = doctor(home, None, PATH=str(home)).out.splitlines()
    other = doctor(home, None, "--json", PATH=str(home), OPENCODE_API_KEY="made-up")

    assert checked(done)["claude"] == ("wrong", "not found", step)
    assert lines[2:4] == ["✗ claude   not found", f"           next: {step}"]
    assert (other.status, checked(other)["claude"][0]) == (0, "warning")


def test_a_path_to_the_cli_that_leads_nowhere_is_told(home: Path) -> None:
    for nowhere in (home / "nowhere", home):
        found = checked(doctor(home, nowhere, "--json"))["claude"]

        assert found == ("wrong", f"{nowhere} is no program", "set CLAUDE_BIN to the program, or unset it")


@pytest.mark.parametrize(
    ("script", "name", "found"),
    [
        ("echo '1.0.0 (Claude Code)'", "version", "1.0.0 is older than 2.1.300"),
        ("exit 3", "version", "it does not tell its version"),
        ("echo nonsense", "login", "it does not tell whether it is logged in"),
        ("exec sleep 600", "login", "it does not tell whether it is logged in"),
    ],
)
def test_a_cli_of_another_kind_is_told_and_never_waited_for_long(
    script: str, name: str, found: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("program", "version"):
        monkeypatch.setattr(f"ocp_trio.claude.{module}.PATIENCE", 0.1 if "sleep" in script else 20.0)
    odd = home.parent / "odd"
    odd.write_text(f"#!/bin/sh\n{script}\n")
    odd.chmod(0o755)

    done = doctor(home, odd, "--json")

    state, told, step = checked(done)[name]
    assert (done.status, state, told) == (1, "wrong", found)
    assert step is not None


def test_without_a_login_the_way_to_one_is_told(home: Path, program: Path) -> None:
    state, found, step = checked(doctor(home, program, "--json", CLAUDE_CODE_OAUTH_TOKEN=""))["login"]

    assert (state, found) == ("wrong", "not logged in")
    assert step is not None
    assert "/login" in step


def test_a_port_on_which_this_server_runs_already_is_well(home: Path, program: Path) -> None:
    with shared_server(program) as server:
        port = str(server.port)
        found = checked(doctor(home, program, "--json", CLAUDE_PROXY_PORT=port))

    assert found["port"] == ("ok", f"a server of version 0.1.0 runs on 127.0.0.1 port {port}", None)


def test_a_port_that_somebody_else_has_is_not(home: Path, program: Path) -> None:
    with open_impostor({"": "<html>"}) as url:
        port = urlsplit(url).port
        state, found, step = checked(doctor(home, program, "--json", CLAUDE_PROXY_PORT=str(port)))["port"]

    assert state == "wrong"
    assert found.startswith(f"CLAUDE_PROXY_PORT={port}: cannot listen on 127.0.0.1 port {port}: ")
    assert step == "end what listens there, or set CLAUDE_PROXY_PORT to another port"


def test_an_address_of_another_machine_is_not(home: Path, program: Path) -> None:
    done = doctor(home, program, "--json", CLAUDE_BIND="192.0.2.1", OCP_ALLOW_OPEN="1")

    assert checked(done)["port"][0] == "wrong"
    assert checked(done)["port"][2] == "set CLAUDE_BIND to an address of this machine"


MULTI = {"CLAUDE_AUTH_MODE": "multi", "OCP_ADMIN_KEY": "made-up"}


def test_a_store_is_opened_where_there_is_one_and_not_made_where_there_is_none(home: Path, program: Path) -> None:
    before = checked(doctor(home, program, "--json", **MULTI))["store"]
    assert list(home.iterdir()) == []
    path = make_store(home / ".ocp/ocp-trio.db")
    after = checked(doctor(home, program, "--json", **MULTI))["store"]

    assert before == ("ok", f"{home}/.ocp will be made when it is needed", None)
    assert after == ("ok", f"{path} takes writes", None)


def make_store(path: Path) -> Path:
    async def make() -> None:
        async with open_store(path) as store:
            await store.ping()

    trio.run(make)
    return path


def test_a_store_that_others_may_read_is_warned_of_and_closed_to_them(home: Path, program: Path) -> None:
    path = make_store(home / ".ocp/ocp-trio.db")
    path.chmod(0o644)

    done = doctor(home, program, "--json", **MULTI)

    assert done.status == 0
    assert checked(done)["store"] == ("warning", f"others could read {path} until now; it takes writes", None)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_store_that_is_none_or_does_not_answer_is_told(home: Path, program: Path) -> None:
    make_store(home / ".ocp/ocp-trio.db").write_text("not a database, but long enough to be taken for one" * 100)

    file = checked(doctor(home, program, "--json", **MULTI))["store"]
    nonsense = checked(doctor(home, program, "--json", OCP_STORE="nonsense://x"))["store"]

    assert file[0] == nonsense[0] == "wrong"
    assert file[2] == f"look at {home}/.ocp/ocp-trio.db: who owns it, and is it a store?"
    assert nonsense[1].startswith("OCP_STORE='nonsense://…': a path, redis://")


def test_a_redis_that_is_not_there_is_told_without_a_word_of_its_clients(home: Path) -> None:
    # In a process of its own: what the client leaves behind of a refused connection is a warning here.
    environment = {"HOME": str(home), "PATH": os.defpath, "OCP_STORE": "redis://127.0.0.1:1", "CLAUDE_PROXY_PORT": "0"}
    done = subprocess.run(
        [INSTALLED[0], "doctor", "--json"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    found = checked(Done(done.returncode, done.stdout, done.stderr))["store"]
    assert (found[0], found[2]) == ("wrong", "is the Redis of OCP_STORE running?")
    assert done.stderr == ""


def test_a_store_in_use_by_a_server_is_well(home: Path, program: Path, tmp_path: Path) -> None:
    path = str(make_store(tmp_path / "store.db"))
    with shared_server(program, OCP_STORE=path, **MULTI):
        found = checked(doctor(home, program, "--json", OCP_STORE=path, **MULTI))

    assert found["store"] == ("ok", f"{path} takes writes", None)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_folder_that_cannot_be_had_is_told(home: Path, program: Path) -> None:
    (home / ".ocp").write_text("a file")

    done = doctor(home, program, "--json")

    assert done.status == 1
    assert checked(done)["folder"] == (
        "wrong",
        f"{home}/.ocp cannot be written",
        f"give this user a folder {home}/.ocp",
    )
