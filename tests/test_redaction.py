"""No log line, in whatever becomes of a request, tells a key, a prompt, an answer, a token or a home folder."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_program import install
from fake_script import (
    burst,
    client_call,
    exits,
    failed_result,
    hang,
    message_end,
    prompt,
    raw,
    stderr,
    success,
    text,
    thinking,
)
from raw_client import RawClient, open_client
from server_process import Server, open_server
from web_app import open_web_app

import ocp_trio
from ocp_trio.testing import ScriptedBackend

SECRETS = {
    "prompt": "prompt-4f1c",
    "answer": "answer-9b2e",
    "thought": "thought-77aa",
    "stderr": "stderr-c0de",
    "token": "token-51d3",
    "admin": "admin-e8e8",
    "wrong": "wrong-0f0f",
    "system": "system-3d3d",
    "tool": "tool-a1a1",
    "argument": "argument-6c6c",
    "image": "aW1hZ2Utc2VjcmV0",
    "stop": "stop-1212",
}
FIELDS = frozenset(
    {
        *("active", "at", "by", "cause", "count", "delay", "engine", "error", "event", "found", "heartbeats", "hint"),
        *("id", "intervalMs", "key", "kind", "level", "model", "oldest", "outcome", "problem", "seconds", "served"),
        *("session", "settings", "source", "status", "traceback", "ts", "version", "words"),
    }
)
"""What a line may consist of: names, numbers, kinds; never what somebody said."""
PLACES = ("/logs?n=1000", "/status", "/health", "/api/usage?all=true", "/api/keys", "/cache/stats")
"""Where the administrator looks."""
ODD_BODIES = (
    f'{{"model": "sonnet", "messages": "{SECRETS["prompt"]}"}}',
    f'{{"model": "{SECRETS["prompt"]}", "messages": [{{"role": "user", "content": "x"}}]}}',
    f'{{"messages": [{{"role": "{SECRETS["prompt"]}", "content": 5}}]}}',
    f'{SECRETS["prompt"]}{{"',
    f'["{SECRETS["prompt"]}"]',
)


def _calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of a logger, and where it stands."""
    package = Path(ocp_trio.__file__).parent
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"), attr=method)) if method in LOGS:
                    yield f"{path.relative_to(package)}:{node.lineno}", node


ODD_LINES = f'{SECRETS["answer"]}\n{{"type":"x","y":"{SECRETS["answer"]}"}}\n'.encode()
LOGS = {"debug", "info", "warning", "error", "critical", "exception", "log"}


def _odd(call: ast.Call) -> str | None:
    """Say what of a call may tell more than it should."""
    match call.args:
        case [ast.Constant(value=str())]:
            pass
        case _:
            return "its event is no constant"
    for keyword in call.keywords:
        match keyword:
            case ast.keyword(arg="extra", value=ast.Dict(keys=keys)):
                names = {key.value if isinstance(key, ast.Constant) else None for key in keys}
                if not names <= FIELDS:
                    return f"it has fields of its own: {names - FIELDS}"
            case ast.keyword(arg="exc_info"):
                pass
            case _:
                return f"{keyword.arg} is not told field by field"
    return None


def test_every_log_call_has_a_constant_event_and_fields_that_are_allowed() -> None:
    calls = dict(_calls())

    assert len(calls) > 25
    assert {where: odd for where, call in calls.items() if (odd := _odd(call))} == {}


async def _read(client: RawClient) -> None:
    await client.head()
    await client.rest()


async def _make_requests(server: Server, key: str) -> None:
    """Have every kind of request, with secrets in whatever may hold one."""
    own = {"authorization": f"Bearer {key}"}
    answered = (text(SECRETS["answer"]), success(text=SECRETS["answer"]))
    scripts = {
        "ok": prompt(thinking(SECRETS["thought"]), *answered, text=SECRETS["prompt"]),
        "dies": prompt(stderr(SECRETS["stderr"].encode()), text(SECRETS["answer"]), exits(1)),
        "dies at once": prompt(stderr(SECRETS["stderr"].encode()), exits(1)),
        "fails": prompt(failed_result(f"API Error: {SECRETS['answer']}"), exits(1)),
        "odd": prompt(raw(ODD_LINES), *answered),
        "stalls": prompt(text(SECRETS["answer"]), hang()),
        "calls": prompt(client_call("f", a=SECRETS["argument"]), message_end("tool_use"), success()),
    }
    for script in scripts.values():
        for stream in (True, False):
            async with server.chat(script, headers=own, stream=stream) as client:
                await _read(client)
    details = {
        "messages": [
            {"role": "system", "content": SECRETS["system"]},
            {"role": "user", "content": [
                {"type": "text", "text": prompt(*answered)},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{SECRETS['image']}"}},
            ]},
        ],
        "tools": [{"type": "function", "function": {"name": SECRETS["tool"], "parameters": {"type": "object"}}}],
        "stop": [SECRETS["stop"]],
    }  # fmt: skip
    structured = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": SECRETS["argument"]}}}
    for body in (details, {"response_format": structured}, {"response_format": {"type": SECRETS["argument"]}}):
        async with server.chat(prompt(*answered), headers=own, **body) as client:
            await _read(client)
    async with server.chat(prompt(text(SECRETS["answer"]), hang()), headers=own, stream=True) as client:
        await client.head()
    async with server.chat(prompt(burst(2000, SECRETS["answer"]), success()), headers=own, stream=True) as client:
        await client.head()
    for header in (f"Bearer {SECRETS['wrong']}", f"Basic {SECRETS['wrong']}", SECRETS["wrong"]):
        async with server.chat("hi", headers={"authorization": header}) as client:
            await _read(client)
    for odd in ODD_BODIES:
        async with open_client(server.port) as client:
            await client.ask("POST", "/v1/chat/completions", odd, **own)
            await _read(client)
    for path in (f"/{SECRETS['prompt']}", f"/v1/models/{SECRETS['prompt']}", f"/api/keys/{SECRETS['prompt']}/quota"):
        async with open_client(server.port) as client:
            await client.ask("GET", path, **own)
            await _read(client)


async def test_whatever_is_asked_nothing_of_it_is_logged_or_told_to_others(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "CLAUDE_AUTH_MODE": "multi",
        "OCP_ADMIN_KEY": SECRETS["admin"],
        "CLAUDE_CODE_OAUTH_TOKEN": SECRETS["token"],
        "CLAUDE_STALL_TIMEOUT": "500",
        "CLAUDE_HEARTBEAT_INTERVAL": "100",
        "CLAUDE_CACHE_TTL": "60000",
    }
    admin = {"authorization": f"Bearer {SECRETS['admin']}"}
    async with open_server(install(tmp_path), **settings) as server:
        async with open_client(server.port) as client:
            await client.ask("POST", "/api/keys", {"name": "anna"}, **admin)
            key = str((await client.answer())["key"])
        await _make_requests(server, key)
        await server.wait_idle()
        told = [
            json.dumps(await server.get(path, **admin)) for path in ("/logs?n=1000", "/health", "/api/usage?all=true")
        ]
        async with open_client(server.port) as client:
            await client.ask("GET", "/metrics", **admin)
            await client.head()
            told.append((await client.rest()).decode())
            assert client.status == 200
        lines = server.output()

    events = {entry["event"] for entry in json.loads(told[0])["entries"]}
    assert {"request_start", "request_end", "heartbeat_active", "odd_lines"} <= events
    for secret in (*SECRETS.values(), key, str(server.home), str(Path.home())):
        assert [where for where in (*told, lines) if secret in where] == []
    entries = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    assert {name for entry in entries for name in entry} <= FIELDS


@pytest.mark.parametrize("path", ["in the backend", "in a route"])
async def test_a_defect_is_logged_with_its_places_and_without_its_message(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(ScriptedBackend):
        def resolve(self, model: str) -> str | None:
            if path == "in a route":
                raise ValueError(SECRETS["prompt"])
            return model

    with trio.fail_after(5):
        async with open_web_app(Broken([], refuse=ValueError(SECRETS["prompt"]))) as app:
            status, body = await app.ask()
            [entry] = app.logged("internal_error")

    printed = capsys.readouterr().err
    assert (status, b"internal_error" in body) == (500, True)
    assert entry["level"] == "error"
    assert "ValueError" in printed
    assert "ocp_trio.web" in printed
    assert SECRETS["prompt"] not in printed + body.decode() + json.dumps(entry)
