"""The server says plainly what is wrong with its settings and surroundings, and serves where it can."""

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_program import install
from fake_script import hang, prompt
from raw_client import open_client
from server_process import HYPERCORN, MODULE, open_server

from ocp_trio.cli import main


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLAUDE_PROXY_PORT", "65536"),
        ("CLAUDE_TIMEOUT", "-1"),
        ("CLAUDE_HEARTBEAT_INTERVAL", "15s"),
        ("CLAUDE_HEARTBEAT_INTERVAL", "99999999999999"),
        ("CLAUDE_HEARTBEAT_FORMAT", "dots"),
        ("CLAUDE_MAX_CONCURRENT", "0"),
        ("OCP_EARLY_HEADERS", "yes"),
        ("CLAUDE_AUTH_MODE", "open"),
        ("CLAUDE_BIND", "0.0.0.0"),
        # Somebody else's, and impossible.
        ("CLAUDE_BIND", "192.0.2.1"),
        ("CLAUDE_BIND", "a" * 64),
    ],
)
def test_a_wrong_setting_stops_the_start_in_one_line_with_its_name_and_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCP_ALLOW_OPEN", str(int(value != "0.0.0.0")))
    monkeypatch.setenv("CLAUDE_PROXY_PORT", "0")
    monkeypatch.setenv(name, value)

    result = CliRunner().invoke(main, ["serve"])

    assert result.exit_code == 2
    [line] = result.output.splitlines()
    assert line.startswith(f"ocp-trio: {name}={value!r}: ")


@pytest.mark.parametrize("command", [MODULE, HYPERCORN], ids=["ocp-trio serve", "hypercorn"])
async def test_a_wrong_setting_leaves_nothing_listening(command: Sequence[str]) -> None:
    async with open_server(command=command, listening=False, CLAUDE_TIMEOUT="soon") as server:
        status = await server.wait()

        # Hypercorn 0.18 forgets the status of a worker that failed.
        assert status == 2 or command == HYPERCORN
        assert server.output() == "ocp-trio: CLAUDE_TIMEOUT='soon': a whole number is expected\n"


async def test_a_port_that_is_taken_is_named_and_its_owner_is_not_disturbed(program: Path) -> None:
    async with open_server(program) as first:
        taken = str(first.port)
        async with open_server(program, listening=False, CLAUDE_PROXY_PORT=taken) as second:
            assert await second.wait() == 2
            [line] = second.output().splitlines()
        assert line.startswith(f"ocp-trio: CLAUDE_PROXY_PORT={taken}: cannot listen on 127.0.0.1 port {taken}: ")
        assert (await first.get("/health"))["status"] == "ok"


async def test_options_go_before_the_environment(program: Path) -> None:
    command = (*MODULE, "--host", "localhost", "--port", "0", "--demo")
    async with open_server(program, command=command, CLAUDE_PROXY_PORT="x", CLAUDE_BIND="192.0.2.1") as server:
        models = [model["id"] for model in (await server.get("/v1/models"))["data"]]
        async with server.chat("hi", model="demo", stream=True) as client:
            await client.head()
            await client.read_until("This")
        async with server.chat("hi") as client:
            await client.answer()

    assert client.status == 200
    assert models[-1] == "demo"
    assert "claude-sonnet-5-5" in models


async def test_without_home_and_path_it_serves_and_says_so(program: Path) -> None:
    async with open_server(program, HOME=None, PATH=None) as server:
        async with server.chat("hi") as client:
            answer = await client.answer()

        assert answer["choices"][0]["message"]["content"] == "ok"
        assert len(server.logged("no_home")) == 1


@pytest.mark.skipif(
    shutil.which("claude", path="/usr/local/bin:/usr/bin:/bin") is not None, reason="a CLI is installed"
)
async def test_without_the_cli_the_demo_is_served_and_everybody_is_told_how_to_install_it() -> None:
    async with open_server() as server:
        models = [model["id"] for model in (await server.get("/v1/models"))["data"]]
        async with server.chat("hi", model="demo", stream=True) as demo:
            await demo.head()
            await demo.read_until("This")
        async with server.chat("hi", stream=True) as claude:
            answer = await claude.answer()

        assert models == ["demo"]
        assert claude.error == (503, "server_error", "backend_unavailable")
        assert "npm install -g @anthropic-ai/claude-code" in answer["error"]["message"]
        assert int(claude.headers["retry-after"]) >= 1
        [entry] = server.logged("claude_missing")
        assert "npm install -g @anthropic-ai/claude-code" in entry["hint"]
        assert list(server.home.iterdir()) == []


async def test_a_cli_that_is_too_old_is_warned_of_with_both_versions(tmp_path: Path) -> None:
    old = tmp_path / "claude"
    old.write_text("#!/bin/sh\necho '1.0.0 (Claude Code)'\n")
    old.chmod(0o755)
    async with open_server(old) as server:
        [entry] = await server.wait_logged("claude_old")

    assert (entry["level"], entry["found"], entry["oldest"]) == ("warning", "1.0.0", "2.1.300")


async def test_a_cli_that_is_not_where_claude_bin_says_is_a_503_each_time(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere/claude"
    async with open_server(missing, CLAUDE_MAX_CONCURRENT="1", CLAUDE_MAX_QUEUE="0") as server:
        [entry] = await server.wait_logged("claude_version_unknown")
        for stream in (True, False) * 2:
            async with server.chat("hi", stream=stream) as client:
                answer = await client.answer()
            assert client.error == (503, "server_error", "backend_unavailable")
            assert str(tmp_path) not in str(answer)

    assert "CLAUDE_BIN" in entry["hint"]


async def test_beyond_the_loopback_a_key_is_asked_for(program: Path) -> None:
    async with open_server(
        program, CLAUDE_BIND="0.0.0.0", CLAUDE_AUTH_MODE="shared", PROXY_API_KEY="made-up"
    ) as server:
        async with server.chat("hi") as without:
            await without.answer()
        async with server.chat(
            "hi", headers={"authorization": "Bearer made-up", "host": socket.gethostname()}
        ) as client:
            await client.answer()

    assert without.error == (401, "invalid_request_error", "invalid_api_key")
    assert client.status == 200


async def test_slots_that_are_added_while_it_runs_serve_those_who_wait(program: Path) -> None:
    admin = {"authorization": "Bearer made-up-admin"}
    async with (
        open_server(program, CLAUDE_MAX_CONCURRENT="1", OCP_ADMIN_KEY="made-up-admin") as server,
        server.chat(prompt(hang()), stream=True) as first,
        server.chat("hi") as second,
    ):
        await first.head()
        async with open_client(server.port) as client:
            await client.ask("PATCH", "/settings", {"maxConcurrent": 2}, **admin)
            answer = await client.answer()
        served = await second.answer()

        assert answer["current"]["maxConcurrent"] == 2
        assert (await server.get("/health"))["concurrency"]["maxConcurrent"] == 2
        assert served["choices"][0]["message"]["content"] == "ok"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OCP_STORE", "nonsense://x:secret@h", "ocp-trio: OCP_STORE='nonsense://…': a path, "),
        ("OPENCODE_GO_BASE_URL", "nonsense", "ocp-trio: OPENCODE_GO_BASE_URL='nonsense': "),
    ],
)
async def test_what_cannot_be_opened_at_the_start_is_one_line_too(name: str, value: str, told: str) -> None:
    settings: dict[str, Any] = {
        "OPENCODE_API_KEY": "made-up",
        "CLAUDE_AUTH_MODE": "multi",
        "OCP_ADMIN_KEY": "x",
        name: value,
    }
    async with open_server(listening=False, **settings) as server:
        status = await server.wait()

        *_, line = server.output().splitlines()
        assert status == 2
        assert line.startswith(told)
        assert "Traceback" not in server.output()
