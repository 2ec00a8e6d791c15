"""What the server tells of its CLI and of its children is what is there."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fake_program import install
from fake_script import api_error, exits, hang, ignore_sigterm, prompt, rate_limit, stderr, success, text
from prometheus_client.parser import text_string_to_metric_families
from raw_client import open_client
from server_process import Server, open_server
from watching import until


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


def auth_is(server: Server, **expected: Any) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        auth = (await server.get("/health"))["auth"]
        return {name: auth[name] for name in expected} == expected

    return look


async def metric(server: Server, name: str, **labels: str) -> float:
    """Return a value for the backend ``claude``; 0 if there is none (yet)."""
    async with open_client(server.port) as client:
        await client.ask("GET", "/metrics")
        await client.head()
        metrics = (await client.rest()).decode()
    samples = [each for family in text_string_to_metric_families(metrics) for each in family.samples]
    wanted = {"backend": "claude", **labels}
    return next((each.value for each in samples if each.name == name and each.labels == wanted), 0.0)


async def test_the_login_is_looked_at_when_the_server_starts(program: Path) -> None:
    async with open_server(program, CLAUDE_CODE_OAUTH_TOKEN="made-up-token") as server:
        await until(auth_is(server, ok=True, okSource="auth_status", lastOutcome="ok", consecutiveFailures=0))
        health = await server.get("/health")

    assert health["auth"]["okAt"] == health["auth"]["lastCheck"]
    assert health["backends"][0]["version"] == "2.1.332"
    for secret in ("made-up-token", str(server.home), str(program.parent)):
        assert secret not in str(health)


async def test_a_missing_login_is_told_and_logged_with_what_to_do(program: Path) -> None:
    async with open_server(program) as server:
        await until(
            auth_is(server, ok=False, okSource=None, okAt=None, lastOutcome="logged_out", consecutiveFailures=1)
        )
        [entry] = server.logged("login_not_ok")

    assert (entry["level"], "claude /login" in str(entry["hint"])) == ("warning", True)


async def test_what_requests_find_out_about_the_login_counts(program: Path) -> None:
    async with open_server(program, CLAUDE_CODE_OAUTH_TOKEN="made-up") as server:
        await until(auth_is(server, ok=True))
        async with server.chat(prompt(api_error("no", error="authentication_failed", status=401))) as client:
            await client.answer()
        await until(auth_is(server, ok=False, lastOutcome="refused"))
        async with server.chat("hi") as client:
            await client.answer()
        await until(auth_is(server, ok=True, okSource="request"))


async def test_a_program_that_hangs_when_it_is_asked_delays_neither_answers_nor_the_end(tmp_path: Path) -> None:
    slow = install(tmp_path)
    slow.rename(tmp_path / "fake")
    slow.write_text(f'#!/bin/sh\n[ "$1" = auth ] && exec sleep 600\nexec {tmp_path}/fake "$@"\n')
    slow.chmod(0o755)

    async with open_server(slow) as server:
        async with server.chat("hi") as client:
            await client.answer()
        assert client.status == 200
        # Leaving the block fails if anything is left behind.


async def test_children_and_the_signals_that_ended_them_are_counted(program: Path) -> None:
    async with open_server(program) as server:
        async with server.chat(prompt(ignore_sigterm(), text("a"), hang()), stream=True) as client:
            await client.head()
            await client.read_until('"a"')
            running = await metric(server, "ocp_children_alive"), await metric(server, "ocp_slots_in_use")
        await server.wait_idle()

        async def is_reaped() -> bool:
            return await metric(server, "ocp_children_alive") == 0

        await until(is_reaped)
        signals = [await metric(server, "ocp_kills_total", signal=name) for name in ("SIGTERM", "SIGKILL")]
        [backend] = (await server.get("/health"))["backends"]

    assert running == (1, 1)
    assert signals == [1, 1]
    assert (backend["children"], backend["kills"]) == (0, {"SIGTERM": 1, "SIGKILL": 1})


async def test_the_plans_limits_are_told_once_the_cli_has_told_of_them(program: Path) -> None:
    async with open_server(program) as server:
        before = (await server.get("/usage"))["plan"]
        warned = rate_limit("allowed_warning", rateLimitType="five_hour", utilization=0.91, resetsAt=4_000_000_000)
        async with server.chat(prompt(warned, text("a"), success())) as client:
            await client.answer()
        plan = (await server.get("/usage"))["plan"]

    assert before is None
    assert (plan["currentSession"]["percent"], plan["currentSession"]["status"]) == (91, "allowed_warning")


async def test_nothing_that_a_child_says_on_its_error_output_is_told_anybody(program: Path) -> None:
    said = prompt(stderr(b"token sk-ant-made-up of made-up\n"), text("a"), exits(1))
    async with open_server(program) as server:
        async with server.chat(said) as client:
            answer = await client.answer()
        told = [await server.get(path) for path in ("/health", "/status", "/usage", "/logs")]

        assert client.status == 502
        assert told[1]["recentErrors"][0]["message"] == answer["error"]["message"]
        assert "made-up" not in str((answer, told, server.logged("request_end")))
