"""Keys are made, listed, limited and revoked from the shell, by their names whatever is in them."""

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import fake_program
import pytest
from commands import Done, run
from server_process import INSTALLED, Server, shared_server

ADMIN = "made-up-admin"
NAMES = ["alice", "a/quota", "..", "[red]x[/red] \x1b[31m\u202e", "Zoë 渐"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = fake_program.install(tmp_path_factory.mktemp("fake"))
    with shared_server(program, CLAUDE_AUTH_MODE="multi", OCP_ADMIN_KEY=ADMIN) as server:
        yield server


def keys(server: Server, *arguments: str, stdin: str | None = None) -> Done:
    return run("keys", *arguments, stdin=stdin, OCP_URL=server.url, OCP_ADMIN_KEY=ADMIN)


@pytest.mark.parametrize("name", NAMES)
def test_a_key_lives_from_add_to_revoke_under_any_name(name: str, server: Server) -> None:
    made = keys(server, "add", name, "--daily", "5", "--json")
    secret, key_id = made.json["key"], made.json["id"]
    used = run("models", OCP_URL=server.url, OPENAI_API_KEY=secret)
    changed = keys(server, "quota", name, "--weekly", "9", "--json")
    listed = keys(server, "list", "--json")
    revoked = keys(server, "revoke", name, "--yes", "--json")
    after = run("models", OCP_URL=server.url, OPENAI_API_KEY=secret)

    assert (made.status, made.json["name"]) == (0, name)
    assert used.status == 0
    limits = {period: each["limit"] for period, each in changed.json["quota"].items()}
    assert limits == {"daily": 5, "weekly": 9, "monthly": None}
    [own] = [key for key in listed.json["keys"] if key["id"] == key_id]
    assert (own["name"], own["quota_daily"], own["quota_weekly"], own["revoked"]) == (name, 5, 9, False)
    assert secret not in listed.out
    assert revoked.json == {"revoked": True, "idOrName": key_id}
    assert after == (4, "", "ocp-trio: the API key is wrong; the key that was sent is not the right one for this\n")


def test_the_key_alone_is_standard_output_so_that_a_script_can_keep_it(server: Server) -> None:
    done = keys(server, "add", "script")

    assert done.out.startswith("ocp_")
    assert done.out.count("\n") == 1
    assert done.err.startswith("key key_")
    assert done.err.endswith(" for script: keep it now, it is not shown again\n")


def test_the_list_shows_keys_in_service_and_revoked_ones_when_asked(server: Server) -> None:
    keys(server, "add", "staying", "--monthly", "1000")
    keys(server, "add", "leaving")
    keys(server, "revoke", "leaving", "--yes")

    shown, everything = keys(server, "list").out, keys(server, "list", "--all").out

    assert shown.splitlines()[0].split() == ["name", "id", "key", "made", "daily", "weekly", "monthly"]
    [row] = [line.split() for line in shown.splitlines() if line.startswith("staying")]
    assert row[-3:] == ["-", "-", "1,000"]
    assert "leaving" not in shown
    assert "leaving" in everything
    assert "\x1b" not in shown


def test_a_quota_is_shown_with_its_use_and_a_limit_taken_away_with_none(server: Server) -> None:
    keys(server, "add", "limited", "--daily", "0", "--weekly", "9")

    done = keys(server, "quota", "limited", "--weekly", "none")

    assert done.out == "period   used  limit\ndaily       0      0\nweekly      0      -\nmonthly     0      -\n"


@pytest.mark.parametrize("answer", ["y\n", "n\n", ""])
def test_revoking_asks_nobody_who_cannot_answer(answer: str, server: Server) -> None:
    key_id = keys(server, "add", f"asked {answer!r}", "--json").json["id"]

    done = keys(server, "revoke", key_id, stdin=answer)

    assert done == (2, "", "ocp-trio: nobody can be asked here: --yes revokes without asking\n")
    assert key_id in keys(server, "list").out


@pytest.mark.parametrize(("answer", "status", "stays"), [(b"n\n", 1, True), (b"\x03", 1, True), (b"y\n", 0, False)])
def test_at_a_terminal_revoking_asks_and_shows_that_it_waits(
    answer: bytes, status: int, stays: bool, server: Server, tmp_path: Path
) -> None:
    key_id = keys(server, "add", f"at a terminal {answer!r}", "--json").json["id"]
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.defpath,
        "OCP_URL": server.url,
        "OCP_ADMIN_KEY": ADMIN,
        "TERM": "xterm",
    }
    ours, theirs = pty.openpty()

    command = [INSTALLED[0], "keys", "revoke", key_id]
    # With a controlling terminal, whose Ctrl-C is a signal.
    with subprocess.Popen(
        ["setsid", "--ctty", *command], env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(ours, 2**16)
        os.write(ours, answer)
        out, _ = process.communicate(timeout=60)
    os.close(ours)

    assert (process.returncode, out) == (status, b"")
    assert f"asking {server.url}".encode() in seen
    assert (key_id in keys(server, "list").out) == stays


@pytest.mark.parametrize("command", [["revoke", "--yes"], ["quota"], ["quota", "--daily", "1"]])
def test_a_key_that_is_not_there_is_named_with_the_way_to_those_that_are(command: list[str], server: Server) -> None:
    done = keys(server, *command, "nobody")

    message = "ocp-trio: there is no key 'nobody' in service: `ocp-trio keys list` shows those that are\n"
    assert done == (1, "", message)


@pytest.mark.parametrize("limit", ["-1", "x", "1e3", "", "٣", "9" * 10])
def test_a_limit_that_is_none_is_a_wrong_usage(limit: str, server: Server) -> None:
    done = keys(server, "add", "never", "--daily", limit)

    assert done.status == 2
    assert f"{limit!r} is neither a number of requests nor `none`" in done.err
    assert "never" not in keys(server, "list").out


def test_a_name_that_is_taken_or_none_is_refused_in_the_servers_words(server: Server) -> None:
    keys(server, "add", "taken")

    assert keys(server, "add", "taken") == (1, "", "ocp-trio: another key has this name\n")
    assert keys(server, "add", " ") == (1, "", "ocp-trio: name must have 1 to 200 characters\n")


def test_without_the_administrators_key_nothing_is_done_and_the_key_is_asked_for(server: Server) -> None:
    secret = keys(server, "add", "ordinary").out.strip()

    without = run("keys", "list", OCP_URL=server.url)
    ordinary = run("keys", "list", OCP_URL=server.url, OPENAI_API_KEY=secret)

    assert (without.status, ordinary.status) == (4, 4)
    assert without.err.endswith("; set OCP_ADMIN_KEY or OPENAI_API_KEY, or use --key-file\n")
    assert ordinary.err == (
        "ocp-trio: this needs the administrator's key (OCP_ADMIN_KEY); the key that was sent is not the right one for"
        " this\n"
    )


def test_a_server_that_keeps_no_keys_says_what_turns_them_on(tmp_path: Path) -> None:
    with shared_server(fake_program.install(tmp_path), OCP_ADMIN_KEY=ADMIN) as server:
        done = keys(server, "list")

    assert done.status == 1
    assert "CLAUDE_AUTH_MODE=multi" in done.err
