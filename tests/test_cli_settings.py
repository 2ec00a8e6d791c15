"""The settings of a running server are shown and changed from the shell."""

from collections.abc import Iterator

import fake_program
import pytest
from commands import Done, run
from server_process import Server, shared_server

ADMIN = "made-up-admin"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with shared_server(fake_program.install(tmp_path_factory.mktemp("fake")), OCP_ADMIN_KEY=ADMIN) as server:
        yield server


def settings(server: Server, *arguments: str, key: str | None = ADMIN) -> Done:
    return run("settings", *arguments, OCP_URL=server.url, OCP_ADMIN_KEY=key)


def test_those_that_change_at_once_come_first_then_those_that_need_a_restart(server: Server) -> None:
    done = settings(server)

    assert done.status == 0
    at_once, _, later = done.out.partition("\n\n")
    [row] = [line for line in at_once.splitlines() if line.startswith("queueRetryAfter ")]
    assert row.split(maxsplit=3) == ["queueRetryAfter", "5", "s", "Seconds that a refused client is asked to wait."]
    assert at_once.startswith("changes at once ")
    assert later.startswith("needs a restart ")
    assert "\nport " in later
    assert ADMIN not in done.out


def test_a_change_holds_at_once_and_is_what_json_then_shows(server: Server) -> None:
    done = settings(server, "maxConcurrent=3", "heartbeatFormat=empty-delta")

    shown = settings(server, "--json").json
    assert done == (
        0,
        "",
        (
            "maxConcurrent is now 3, until the server is started anew\n"
            "heartbeatFormat is now empty-delta, until the server is started anew\n"
        ),
    )
    assert (shown["maxConcurrent"]["value"], shown["heartbeatFormat"]["value"]) == (3, "empty-delta")


def test_what_cannot_be_changed_is_said_with_its_reason_beside_what_was(server: Server) -> None:
    done = settings(server, "maxQueue=7", "port=1", "timeout=soon", "nonsense=1")
    as_json = settings(server, "maxQueue=8", "port=1", "--json")

    assert (done.status, done.out) == (1, "")
    changed, refused = done.err.splitlines()
    assert changed == "maxQueue is now 7, until the server is started anew"
    for reason in ("port needs a restart", "CLAUDE_TIMEOUT='soon': a whole number", "there is no setting 'nonsense'"):
        assert reason in refused
    assert as_json.status == 1
    assert as_json.json["results"]["maxQueue"] == {"ok": True, "value": 8}
    assert "error" in as_json.json["results"]["port"]


@pytest.mark.parametrize("text", ["maxQueue", "=7", ""])
def test_what_is_no_change_is_a_wrong_usage(text: str, server: Server) -> None:
    done = settings(server, text)

    message = f"ocp-trio: {text!r} is no change of a setting: NAME=VALUE is expected, such as maxConcurrent=4\n"
    assert done == (2, "", message)


def test_settings_are_the_administrators(server: Server) -> None:
    done = settings(server, key=None)

    assert (done.status, done.out) == (4, "")
    assert "OCP_ADMIN_KEY" in done.err
