"""In auth mode multi there may be a key that is no secret, with a name and a quota like any other."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from web_app import WebApp, open_web_app

from ocp_trio.completion import Completed
from ocp_trio.errors import SettingError
from ocp_trio.settings import Settings
from ocp_trio.store import Store, open_store
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange

ADMIN, PUBLIC = "admin-secret", "everybody"
AS_ADMIN, AS_ANYBODY = ({"authorization": f"Bearer {key}"} for key in (ADMIN, PUBLIC))


@asynccontextmanager
async def open_multi(tmp_path: Path, **settings: Any) -> AsyncIterator[tuple[WebApp, Store]]:
    settings = {"anonymous_key": PUBLIC, "auth_mode": "multi", "admin_key": ADMIN, **settings}
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend([(Completed("stop"),)]), store=store, **settings) as app,
    ):
        yield app, store


async def test_whoever_uses_it_is_served_and_counted_under_one_name(tmp_path: Path) -> None:
    async with open_multi(tmp_path) as (app, store):
        for _ in range(2):
            assert (await app.ask(AS_ANYBODY))[0] == 200
        report = await store.usage.report()
        [key] = await store.keys.list()

    assert [(each.key_name, each.totals.requests) for each in report.by_key] == [("anonymous", 2)]
    assert (key.name, key.revoked) == ("anonymous", False)


async def test_its_quota_is_set_and_spent_like_any_others(tmp_path: Path) -> None:
    async with open_multi(tmp_path) as (app, _):
        assert (await app.ask(AS_ANYBODY))[0] == 200
        path, body = "/api/keys/anonymous/quota", json.dumps({"daily": 2}).encode()
        async with open_asgi_exchange(app.asgi, path, method="PATCH", body=body, headers=AS_ADMIN) as exchange:
            assert await exchange.head() == 200
            await exchange.body()
        statuses = [(await app.ask(AS_ANYBODY))[0] for _ in range(3)]

    assert statuses == [200, 429, 429]


async def test_revoked_it_serves_nobody_until_another_has_its_name(tmp_path: Path) -> None:
    async with open_multi(tmp_path) as (app, store):
        await app.ask(AS_ANYBODY)
        await store.keys.revoke("anonymous")
        revoked = (await app.ask(AS_ANYBODY))[0]
        await store.keys.create("anonymous")
        again = (await app.ask(AS_ANYBODY))[0]

    assert (revoked, again) == (401, 200)


async def test_its_first_uses_at_once_begin_one_key(tmp_path: Path) -> None:
    statuses = []

    async def use(app: WebApp) -> None:
        statuses.append((await app.ask(AS_ANYBODY))[0])

    async with open_multi(tmp_path) as (app, store):
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(use, app)
        keys = await store.keys.list()

    assert statuses == [200] * 10
    assert len(keys) == 1


@pytest.mark.parametrize(
    "path", ["/logs", "/status", "/usage", "/metrics", "/cache/stats", "/api/usage", "/api/keys", "/dashboard/events"]
)
async def test_it_tells_nothing_of_what_others_do(tmp_path: Path, path: str) -> None:
    async with open_multi(tmp_path) as (app, _):
        status, answer = await app.get(path, **AS_ANYBODY)

    assert (status, answer["error"]["code"]) == (403, "insufficient_permissions")


async def test_in_no_other_mode_and_unset_it_is_no_key(tmp_path: Path) -> None:
    async with open_multi(tmp_path, anonymous_key="") as (app, _):
        assert (await app.ask(AS_ANYBODY))[0] == 401
        assert (await app.ask({"authorization": "Bearer "}))[0] == 401
    async with open_web_app(
        ScriptedBackend([]), auth_mode="shared", proxy_api_key="shared", anonymous_key=PUBLIC
    ) as app:
        assert (await app.ask(AS_ANYBODY))[0] == 401


@pytest.mark.parametrize("name", ["OCP_ADMIN_KEY", "PROXY_API_KEY"])
def test_no_secret_key_may_be_the_same(name: str) -> None:
    with pytest.raises(SettingError, match="PROXY_ANONYMOUS_KEY") as caught:
        Settings.from_environment({name: "hunter2", "PROXY_ANONYMOUS_KEY": "hunter2"})

    assert "hunter2" not in str(caught.value)
