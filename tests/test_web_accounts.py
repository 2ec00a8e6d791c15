"""In auth mode multi everybody has a key, a quota, and a row for each request."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from web_app import CHAT, WebApp, frames, open_web_app

from ocp_trio.completion import Batch, Completed, CompletionRequest, TextDelta, Usage
from ocp_trio.errors import QueueFullError, UpstreamError
from ocp_trio.store import Store, open_store
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange
from ocp_trio.testing.backend import Step

ADMIN = "admin-secret"
AS_ADMIN = {"authorization": f"Bearer {ADMIN}"}
ANSWER: list[Step] = [(TextDelta("Hello"),), (Completed("stop", Usage(input=3, output=5)),)]


@asynccontextmanager
async def open_multi(tmp_path: Path, backend: ScriptedBackend) -> AsyncIterator[tuple[WebApp, Store]]:
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(backend, store=store, auth_mode="multi", admin_key=ADMIN) as app,
    ):
        yield app, store


async def call(
    app: WebApp, method: str, path: str, key: str = ADMIN, body: Any = None, **headers: str
) -> tuple[int, Any]:
    data = b"" if body is None else json.dumps(body).encode()
    fields = {"authorization": f"Bearer {key}", **headers}
    async with open_asgi_exchange(app.asgi, path, method=method, body=data, headers=fields) as exchange:
        await exchange.head()
        return exchange.status, json.loads(await exchange.body())


async def new_key(app: WebApp, name: str, **quota: int) -> str:
    status, made = await call(app, "POST", "/api/keys", body={"name": name})
    assert status == 201
    if quota:
        assert (await call(app, "PATCH", f"/api/keys/{name}/quota", body=quota))[0] == 200
    return str(made["key"])


async def ask(app: WebApp, key: str, **body: Any) -> tuple[int, bytes]:
    return await app.ask({"authorization": f"Bearer {key}"}, **body)


async def test_a_key_is_told_once_serves_until_it_is_revoked_and_is_nowhere_in_the_list(tmp_path: Path) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, _):
        key = await new_key(app, "<img src=x onerror=1>")
        assert (await ask(app, key))[0] == 200

        _, listed = await call(app, "GET", "/api/keys")
        assert [each["name"] for each in listed["keys"]] == ["<img src=x onerror=1>"]
        assert key not in json.dumps(listed)

        assert (await call(app, "DELETE", f"/api/keys/{listed['keys'][0]['id']}"))[1]["revoked"] is True
        assert (await ask(app, key))[0] == 401


async def test_without_a_key_nothing_is_served(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_multi(tmp_path, backend) as (app, _):
        assert (await app.ask())[0] == 401
        assert (await ask(app, "ocp_made-up"))[0] == 401
        assert (await app.get("/health"))[0] == 200

    assert backend.requests == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/keys"),
        ("GET", "/api/keys"),
        ("DELETE", "/api/keys/a"),
        ("PATCH", "/api/keys/a/quota"),
        ("GET", "/api/keys/a/quota"),
        ("GET", "/api/usage?all=true"),
        ("GET", "/logs"),
    ],
)
async def test_administration_needs_the_administrators_key(tmp_path: Path, method: str, path: str) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, _):
        key = await new_key(app, "alice")

        status, answer = await call(app, method, path, key=key, body={"name": "b"})

        assert (status, answer["error"]["code"]) == (403, "insufficient_permissions")


async def test_a_spent_quota_is_a_429_that_tells_when_it_begins_anew(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_multi(tmp_path, backend) as (app, _):
        key = await new_key(app, "alice", daily=1)
        assert (await ask(app, key))[0] == 200
        async with app.chat({"authorization": f"Bearer {key}"}) as exchange:
            assert await exchange.head() == 429
            assert int(exchange.headers["retry-after"]) >= 1
            assert exchange.headers["x-should-retry"] == "false"
            error = json.loads(await exchange.body())["error"]

    assert error["code"] == "insufficient_quota"
    assert {name: error["quota"][name] for name in ("period", "limit", "used")} == {
        "period": "daily",
        "limit": 1,
        "used": 1,
    }
    assert len(backend.requests) == 1


async def test_what_failed_before_anything_was_started_is_not_charged(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER, refuse=QueueFullError("full", retry_after=5))

    async with open_multi(tmp_path, backend) as (app, _):
        key = await new_key(app, "alice", daily=5)
        assert (await ask(app, key))[0] == 429

        _, quota = await call(app, "GET", "/api/keys/alice/quota")

    assert quota["quota"]["daily"] == {"limit": 5, "used": 0}


class Waiting(ScriptedBackend):
    """Lets everybody wait for ever."""

    def __init__(self, *, starts_at_once: bool) -> None:
        super().__init__([])
        self.starts_at_once = starts_at_once
        self.asked = trio.Event()

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        self.asked.set()
        await trio.sleep_forever()
        async with super().stream(request) as batches:
            yield batches


@pytest.mark.parametrize(("starts_at_once", "used"), [(True, 0), (False, 1)])
async def test_who_leaves_the_queue_is_charged_only_where_something_may_have_been_spent(
    tmp_path: Path, starts_at_once: bool, used: int
) -> None:
    backend = Waiting(starts_at_once=starts_at_once)

    async with open_multi(tmp_path, backend) as (app, _):
        key = await new_key(app, "alice", daily=5)
        async with app.chat({"authorization": f"Bearer {key}"}) as exchange:
            await backend.asked.wait()
            exchange.disconnect()
        _, quota = await call(app, "GET", "/api/keys/alice/quota")

    assert quota["quota"]["daily"] == {"limit": 5, "used": used}


async def test_each_request_has_one_row_whatever_its_end(tmp_path: Path) -> None:
    scripts: dict[str, list[Step]] = {"ok": ANSWER, "upstream_error": [UpstreamError("x")], "cancelled": [86_400.0]}
    for outcome, script in scripts.items():
        folder = tmp_path / outcome
        folder.mkdir()
        async with open_multi(folder, ScriptedBackend(script)) as (app, _):
            key = await new_key(app, "alice")
            if outcome == "cancelled":
                async with app.chat({"authorization": f"Bearer {key}"}, stream=True) as exchange:
                    await exchange.head()
                    exchange.disconnect()
            else:
                await ask(app, key, stream=True)

            _, report = await call(app, "GET", "/api/usage", key=key)

        [row] = report["recent"]
        assert (row["outcome"], row["key_name"], row["model"]) == (outcome, "alice", "scripted")
        assert report["byKey"][0]["requests"] == 1
        assert report["scope"] == {"self": "alice", "all": False}
        if outcome == "ok":
            assert (row["tokens_in"], row["tokens_out"], row["response_chars"]) == (3, 5, 5)


async def test_the_row_is_there_before_the_client_sees_the_end(tmp_path: Path) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, store):
        key = await new_key(app, "alice")
        async with app.chat({"authorization": f"Bearer {key}"}, stream=True) as exchange:
            await exchange.head()
            async for piece in exchange.pieces():
                if frames(piece)[-1] == "[DONE]":
                    assert len((await store.usage.report()).recent) == 1


async def test_nobody_sees_the_usage_of_others(tmp_path: Path) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, _):
        alice, bob = await new_key(app, "alice"), await new_key(app, "bob")
        await ask(app, alice)
        await ask(app, bob)

        _, own = await call(app, "GET", "/api/usage", key=alice)
        _, everybody = await call(app, "GET", "/api/usage?all=true")

    assert [each["key_name"] for each in own["byKey"]] == ["alice"]
    assert sorted(each["key_name"] for each in everybody["byKey"]) == ["alice", "bob"]


async def test_a_series_adds_up_by_hour_key_and_model_where_it_is_asked_for(tmp_path: Path) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, _):
        await ask(app, await new_key(app, "alice"))

        _, plain = await call(app, "GET", "/api/usage?all=true")
        _, report = await call(app, "GET", "/api/usage?all=true&series=true")

    assert "series" not in plain
    [point] = report["series"]
    assert point == {
        "hour": report["timeline"][0]["hour"],
        "key_name": "alice",
        "model": "scripted",
        "requests": 1,
        "tokens_in": 3,
        "tokens_out": 5,
        "cache_read": 0,
        "cache_write": 0,
    }


@pytest.mark.parametrize(("bind", "status"), [("127.0.0.1", 200), ("0.0.0.0", 403)])
async def test_without_keys_usage_is_shown_on_this_machine_only(tmp_path: Path, bind: str, status: int) -> None:
    settings = {"bind": bind, "allow_open": True}
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend(ANSWER), store=store, **settings) as app,
    ):
        assert (await app.get("/api/usage"))[0] == status


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/usage?limit=abc&hours=-1e9", None, 400),
        ("GET", "/api/usage?since=yesterday", None, 400),
        ("DELETE", "/api/keys/%zz", None, 404),
        ("POST", "/api/keys", {"name": 5}, 400),
        ("POST", "/api/keys", {}, 400),
        ("POST", "/api/keys", [], 400),
        ("PATCH", "/api/keys/nobody/quota", {"daily": 1}, 404),
        ("PATCH", "/api/keys/nobody/quota", {"daily": -1}, 400),
        ("PATCH", "/api/keys/nobody/quota", {"daily": "many"}, 400),
    ],
)
async def test_an_odd_request_is_refused_promptly(
    tmp_path: Path, method: str, path: str, body: Any, status: int
) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, _):
        got, answer = await call(app, method, path, body=body)

    assert got == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", ["/api/keys", "/api/usage", "/settings", "/logs", "/cache", "/cache/stats"])
async def test_no_page_may_drive_the_administration(tmp_path: Path, path: str) -> None:
    async with open_multi(tmp_path, ScriptedBackend(ANSWER)) as (app, _):
        fields = {"origin": "http://10.9.8.7", "access-control-request-method": "POST"}
        async with open_asgi_exchange(app.asgi, path, method="OPTIONS", headers=fields) as exchange:
            await exchange.head()
            await exchange.body()
            assert not [name for name in exchange.headers if name.startswith("access-control-allow-")]
        async with open_asgi_exchange(app.asgi, CHAT, method="OPTIONS", headers=fields) as exchange:
            await exchange.head()
            await exchange.body()
            assert exchange.headers["access-control-allow-origin"] == "http://10.9.8.7"


async def test_two_callers_never_share_what_a_backend_keeps(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_multi(tmp_path, backend) as (app, _):
        for name in ("alice", "bob"):
            await ask(app, await new_key(app, name))

    callers = [asked.caller for asked in backend.requests]
    assert len(set(callers)) == 2
    assert "" not in callers


async def test_a_row_tells_the_cost_and_the_wait_and_reports_add_them_up(tmp_path: Path) -> None:
    answer: list[Step] = [
        (TextDelta("a"),),
        (Completed("stop", Usage(input=3, output=5, cost_usd=0.25)),),
    ]
    backend = ScriptedBackend(answer)
    async with open_multi(tmp_path, backend) as (app, _):
        key = await new_key(app, "alice")
        await ask(app, key)
        await ask(app, key)
        backend._script = [UpstreamError("no")]
        await ask(app, key)

        _, report = await call(app, "GET", "/api/usage", key=key)

    [failed, row, _] = report["recent"]
    assert row["cost_usd"] == 0.25
    assert failed["cost_usd"] is None
    for sums in (report["byKey"][0], report["byModel"][0]):
        assert (sums["requests"], sums["cost_usd"]) == (3, 0.5)
        assert sums["queue_wait_ms"] == sum(each["queue_wait_ms"] for each in report["recent"])
    assert sum(hour["cost_usd"] or 0 for hour in report["timeline"]) == 0.5


async def test_an_answer_from_the_cache_costs_nothing(tmp_path: Path) -> None:
    answer: list[Step] = [(TextDelta("a"),), (Completed("stop", Usage(input=3, output=5, cost_usd=0.25)),)]
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend(answer), store=store, cache_ttl=60.0) as app,
    ):
        await app.ask()
        await app.ask()
        rows = (await store.usage.report()).recent

    assert [row.cost_usd for row in rows] == [0.0, 0.25]


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"5", b"", b"{", b'{"model":"scripted"}', b"\xff"])
async def test_a_body_that_is_no_request_starts_nothing_and_spends_nothing(tmp_path: Path, body: bytes) -> None:
    backend = ScriptedBackend(ANSWER)
    async with open_multi(tmp_path, backend) as (app, _):
        key = await new_key(app, "alice", daily=5)
        headers = {"authorization": f"Bearer {key}"}
        async with open_asgi_exchange(app.asgi, CHAT, body=body, headers=headers) as exchange:
            status = await exchange.head()
            await exchange.body()

        _, quota = await call(app, "GET", "/api/keys/alice/quota")

    assert (status, quota["quota"]["daily"]["used"], backend.requests) == (400, 0, [])
