"""An administrator changes settings while the server runs; the next request has them."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock
from web_app import WebApp, frames, open_web_app

from ocp_trio.completion import Completed, TextDelta
from ocp_trio.settings import Settings
from ocp_trio.store import open_store
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange
from ocp_trio.testing.backend import Step

ADMIN = "admin-secret"
SECRETS = {
    "PROXY_API_KEY",
    "PROXY_ANONYMOUS_KEY",
    "OCP_ADMIN_KEY",
    "OPENCODE_API_KEY",
    "OPENCODE_ZEN_API_KEY",
    "OCP_STORE",
}
ANSWER: list[Step] = [(TextDelta("Hello"),), (Completed("stop"),)]


async def patch(app: WebApp, body: Any, key: str = ADMIN) -> tuple[int, Any]:
    fields = {"authorization": f"Bearer {key}"}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with open_asgi_exchange(app.asgi, "/settings", method="PATCH", body=data, headers=fields) as exchange:
        await exchange.head()
        return exchange.status, json.loads(await exchange.body())


async def test_each_setting_is_told_with_its_range_and_whether_it_needs_a_restart() -> None:
    async with open_web_app(ScriptedBackend([]), admin_key=ADMIN) as app:
        status, told = await app.get("/settings", authorization=f"Bearer {ADMIN}")

    assert status == 200
    assert told["timeout"] == {
        "value": 600_000,
        "type": "integer",
        "min": 0,
        "max": 2**31 - 1,
        "unit": "ms",
        "desc": "Milliseconds that a whole request may take, waiting for a slot included; 0 turns the limit off.",
        "env": "CLAUDE_TIMEOUT",
        "restart": False,
    }
    assert told["heartbeatFormat"]["choices"] == ["comment", "comment-line", "empty-delta"]
    assert (told["maxConcurrent"]["value"], told["cacheTTL"]["value"], told["port"]["restart"]) == (8, 0, True)
    assert {each["env"] for each in told.values()} == {each.metadata["name"] for each in fields(Settings)} - SECRETS


async def test_a_change_is_for_the_next_request_and_not_for_those_that_run(autojump_clock: MockClock) -> None:
    script: list[Step] = [(TextDelta("a"),), 25.0, (Completed("stop"),)]

    async with open_web_app(ScriptedBackend(script), admin_key=ADMIN) as app, app.chat(stream=True) as before:
        await before.head()
        status, answer = await patch(app, {"heartbeatInterval": 10_000, "heartbeatFormat": "comment-line"})
        _, after = await app.ask(stream=True)
        unchanged = await before.body()

    assert (status, answer["errors"]) == (200, [])
    assert answer["results"]["heartbeatInterval"] == {"ok": True, "value": 10_000}
    assert (answer["current"]["heartbeatInterval"], answer["current"]["timeout"]) == (10_000, 600_000)
    assert after.count(b": keepalive\n") == 2
    assert frames(unchanged) == ["role", "a", "finish stop", "[DONE]"]


@pytest.mark.parametrize("value", ["15s", -5, 1.5, 2**31, "1e3", "", None, [], {}, True])
async def test_a_value_is_taken_or_refused_as_it_would_be_from_the_environment(value: Any) -> None:
    async with open_web_app(ScriptedBackend([]), admin_key=ADMIN) as app:
        status, answer = await patch(app, {"timeout": value})

    if value == "":
        # Which the environment takes for the default.
        assert (status, answer["current"]["timeout"]) == (200, 600_000)
    else:
        assert (status, set(answer["results"]["timeout"])) == (400, {"error"})
        assert answer["errors"] == [answer["results"]["timeout"]["error"]]
        assert "CLAUDE_TIMEOUT" in answer["errors"][0]
        assert answer["error"]["code"] == "unsupported_value"
        assert answer["current"]["timeout"] == 600_000


async def test_what_is_fit_is_changed_whatever_becomes_of_the_rest() -> None:
    async with open_web_app(ScriptedBackend([]), admin_key=ADMIN) as app:
        status, answer = await patch(app, {"maxImages": 3, "port": 1, "nonsense": 1, "earlyHeaders": "maybe"})
        _, told = await app.get("/settings", authorization=f"Bearer {ADMIN}")

    assert status == 207
    assert answer["results"]["maxImages"] == {"ok": True, "value": 3}
    assert "needs a restart" in answer["results"]["port"]["error"]
    assert len(answer["errors"]) == 3
    assert (told["maxImages"]["value"], told["earlyHeaders"]["value"], told["port"]["value"]) == (3, True, 3456)


@pytest.mark.parametrize("body", [{}, {"nonsense": 1}, {"proxyApiKey": "x"}, {"adminKey": "x"}, [], 5, b"{", b""])
async def test_nothing_fit_is_a_400_and_changes_nothing(body: Any) -> None:
    async with open_web_app(ScriptedBackend([]), admin_key=ADMIN) as app:
        status, answer = await patch(app, body)

    assert status == 400
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert app.logged("settings_changed") == []


async def test_an_answer_from_before_a_change_is_not_given_after_it(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(backend, store=store, admin_key=ADMIN, cache_ttl=60.0) as app,
    ):
        await app.ask()
        await patch(app, {"maxImages": 20})
        await app.ask()
        same = len(backend.requests)
        await patch(app, {"reasoningContent": True})
        await app.ask()

    assert (same, len(backend.requests)) == (1, 2)


async def test_without_a_store_no_cache_is_promised() -> None:
    async with open_web_app(ScriptedBackend([]), admin_key=ADMIN) as app:
        status, answer = await patch(app, {"cacheTTL": 1000})

    assert status == 400
    assert "needs a store" in answer["errors"][0]


async def test_only_the_administrator_sees_or_changes_anything() -> None:
    async with open_web_app(
        ScriptedBackend([]), auth_mode="shared", proxy_api_key="shared-secret", admin_key=ADMIN
    ) as app:
        assert (await app.get("/settings", authorization="Bearer shared-secret"))[0] == 403
        assert (await patch(app, {"maxImages": 3}, key="shared-secret"))[0] == 403
        assert (await patch(app, {"maxImages": 3}, key="wrong"))[0] == 401


async def test_the_log_tells_which_settings_were_changed_and_no_value() -> None:
    async with open_web_app(ScriptedBackend([]), admin_key=ADMIN) as app:
        await patch(app, {"systemPrompt": "never tell anybody", "maxImages": 1})

    [entry] = app.logged("settings_changed")
    assert entry["settings"] == ["maxImages", "systemPrompt"]
    assert "never tell" not in json.dumps(app.ring.newest(100))
