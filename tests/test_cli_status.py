"""How a server is, and what was used of it, is seen at a glance, and by a program whole."""

from collections.abc import Iterator

import fake_program
import pytest
import trio
from commands import Done, open_impostor, run
from server_process import Server, shared_server

ADMIN = "made-up-admin"
AUTH = {"ok": None}
HEALTH = {"status": "ok", "version": "0.1", "uptime": 90_061_000, "authMode": "none", "instanceName": "i", "auth": AUTH}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = fake_program.install(tmp_path_factory.mktemp("fake"))
    with shared_server(program, CLAUDE_AUTH_MODE="multi", OCP_ADMIN_KEY=ADMIN) as server:
        yield server


def ask(server: Server, command: str, *arguments: str, key: str = ADMIN) -> Done:
    return run(command, *arguments, OCP_URL=server.url, OCP_ADMIN_KEY=key)


def use(server: Server, name: str, *, requests: int) -> str:
    """Make a key, use it, and return it."""
    secret = ask(server, "keys", "add", name).out.strip()

    async def chat() -> None:
        for _ in range(requests):
            async with server.chat("hi", headers={"authorization": f"Bearer {secret}"}) as client:
                await client.answer()
        await server.wait_idle()

    trio.run(chat)
    return secret


def test_status_tells_each_thing_on_a_line(server: Server) -> None:
    use(server, "status", requests=1)

    done = ask(server, "status")

    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert done.status == 0
    assert list(rows) == ["server", "state", "callers", "backends", "login", "store", "running", "requests"]
    assert rows["server"] == f"ocp-trio 0.1.0 at {server.url}"
    assert rows["state"].startswith("ok  for ")
    assert (rows["callers"], rows["backends"], rows["store"]) == ("need a key (multi)", "claude 2.1.332", "sqlite")
    assert rows["running"] == "0 of 8 slots, 0 of 16 waiting, 0 refused"
    assert rows["requests"].endswith(" succeeded")


def test_status_as_json_is_what_the_two_endpoints_say(server: Server) -> None:
    told = ask(server, "status", "--json").json

    assert list(told) == ["health", "status"]
    assert told["health"]["authMode"] == "multi"
    assert told["status"]["proxy"]["version"] == told["health"]["version"] == "0.1.0"


def test_status_shows_what_is_not_well() -> None:
    health = {
        **HEALTH,
        "status": "draining",
        "auth": {"ok": False, "lastOutcome": "logged_out"},
        "store": {"engine": "redis", "ok": False, "cause": "timeout", "lostRows": 1200},
        "stats": {"totalRequests": 1001, "errors": 1, "timeouts": 2, "cancelled": 3, "succeeded": 995},
    }
    errors = [{"time": "2026-12-01T00:00:00+00:00", "message": "a\x1b[31m"}]
    with open_impostor({"/health": health, "/status": {"recentErrors": errors}}) as url:
        done = run("status", "--url", url)

    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines() if line)
    assert rows["state"] == "draining  for 1 d 1 h"
    assert rows["login"] == "no (logged_out): `ocp-trio doctor` says what to do"
    assert rows["store"] == "redis is down (timeout), 1,200 rows of usage lost"
    assert rows["requests"] == "1,001: 995 succeeded, 1 failed, 2 timed out, 3 cancelled"
    assert done.out.splitlines()[-1].endswith("  a\\x1b[31m")


def test_the_administrator_sees_everybodys_usage_and_others_their_own(server: Server) -> None:
    alice = use(server, "alice", requests=2)
    use(server, "bob", requests=1)

    everybody, own = ask(server, "usage"), ask(server, "usage", key=alice)

    rows = {line.split()[0]: line.split()[1:] for line in everybody.out.splitlines() if line}
    assert everybody.status == own.status == 0
    assert (rows["alice"][0], rows["bob"][0]) == ("2", "1")
    assert rows["alice"][1:4] == ["0", "0", "202"]
    assert rows["alice"][5].startswith("$0.00")
    assert "alice" in own.out
    assert "bob" not in own.out


def test_usage_as_json_is_what_the_two_endpoints_say(server: Server) -> None:
    told = ask(server, "usage", "--json", "--hours", "1").json

    assert list(told) == ["plan", "accounts"]
    assert told["plan"]["plan"] is None
    assert {"byKey", "byModel", "timeline"} < set(told["accounts"])


def test_a_plan_is_shown_with_what_is_used_of_it_and_when_it_begins_anew() -> None:
    plan = {
        "currentSession": {"utilization": 0.25, "resetsIn": 7260},
        "weeklyLimits": {"allModels": {"utilization": 1.5, "resetsIn": None}, "opus": {"utilization": None}},
    }
    with open_impostor({"/usage": {"plan": plan}, "/api/usage": {}}) as url:
        done = run("usage", "--url", url)

    assert done.out.splitlines()[:3] == [
        f"session      {'█' * 5}{'░' * 15}  25% used  resets in 2 h 1 min",
        f"week         {'█' * 20}  100% used",
        "week, opus   not known yet",
    ]
    assert done.out.splitlines()[3:] == ["", "no requests in the last 24 h", "", "no requests in the last 24 h"]


def test_a_server_without_accounts_tells_its_plan_all_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    with shared_server(fake_program.install(tmp_path_factory.mktemp("none"))) as server:
        done = run("usage", OCP_URL=server.url)
        as_json = run("usage", "--json", OCP_URL=server.url)

    assert (done.status, done.out) == (0, "plan   not known: upstream has not told of it yet\n")
    assert done.err.startswith("no accounts to show: ")
    assert as_json.json["accounts"] is None
