"""A running request is ended by its id: by whoever sent it, and by the administrator."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock
from web_app import WebApp, frames, open_web_app

from ocp_trio.completion import Completed, TextDelta
from ocp_trio.store import open_store
from ocp_trio.testing import AsgiExchange, ScriptedBackend
from ocp_trio.testing.backend import Step

A: Step = (TextDelta("a"),)
STOP: Step = (Completed("stop"),)
DAY = 86_400.0
ADMIN = "admin-secret"


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def cancel(app: WebApp, request_id: str, key: str = "") -> tuple[int, Any]:
    return await app.get(f"/v1/requests/{request_id}", "DELETE", **(bearer(key) if key else {}))


@asynccontextmanager
async def streaming(app: WebApp, key: str = "", **body: Any) -> AsyncIterator[tuple[str, AsgiExchange]]:
    """Ask, and yield the request's id once it runs; the stream has come to its first text, if it is one."""
    async with app.chat(bearer(key) if key else None, **body) as exchange:
        await app.lifecycle.active.wait_value(lambda count: count > 0)
        [request_id] = app.lifecycle.running
        if body.get("stream"):
            await exchange.head()
            assert frames(await exchange.receive_some() + await exchange.receive_some()) == ["role", "a"]
            assert exchange.headers["x-request-id"] == request_id
        yield request_id, exchange


async def test_a_stream_ends_with_one_error_that_says_so() -> None:
    backend = ScriptedBackend([A, DAY])

    async with open_web_app(backend) as app, streaming(app, stream=True) as (request_id, exchange):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel, app, request_id)
            rest = frames(await exchange.body())

        assert rest == ["error cancelled_error cancelled", "[DONE]"]
        assert backend.running == 0


async def test_a_plain_request_ends_with_a_status_that_nobody_retries() -> None:
    async with (
        open_web_app(ScriptedBackend([A, DAY])) as app,
        streaming(app) as (request_id, exchange),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(cancel, app, request_id)
        body = await exchange.body()

    assert (exchange.status, exchange.headers["x-should-retry"]) == (499, "false")
    assert json.loads(body)["error"]["code"] == "cancelled"


async def test_the_answer_comes_when_the_upstream_is_gone_whatever_the_client_reads(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, DAY], clean_up=4.0)

    async with open_web_app(backend) as app, streaming(app, stream=True) as (request_id, exchange):
        began = trio.current_time()
        answer = await cancel(app, request_id)

        assert (answer, trio.current_time() - began) == ((200, {"id": request_id, "cancelled": True, "gone": True}), 4)
        assert backend.running == 0
        exchange.disconnect()


async def test_the_answer_does_not_wait_longer_than_a_child_may_take(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, DAY], clean_up=60.0)

    async with open_web_app(backend, kill_grace=5.0) as app, streaming(app, stream=True) as (request_id, exchange):
        began = trio.current_time()
        status, answer = await cancel(app, request_id)

        assert (status, answer["gone"], trio.current_time() - began) == (202, False, 7)
        exchange.disconnect()


async def test_a_second_cancellation_waits_for_the_same_end(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend([A, DAY], clean_up=4.0)) as app,
        streaming(app, stream=True) as (request_id, exchange),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(cancel, app, request_id)
        nursery.start_soon(cancel, app, request_id)
        rest = frames(await exchange.body())

    assert rest == ["error cancelled_error cancelled", "[DONE]"]


async def test_what_has_ended_or_never_was_is_not_found() -> None:
    async with open_web_app(ScriptedBackend([A, STOP])) as app:
        async with app.chat() as exchange:
            await exchange.body()

        for request_id in (exchange.headers["x-request-id"], "req_made-up", "%zz"):
            status, answer = await cancel(app, request_id)
            assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_it_counts_as_cancelled_in_counters_log_and_usage(tmp_path: Path) -> None:
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend([A, DAY]), store=store) as app,
    ):
        async with streaming(app, stream=True) as (request_id, exchange), trio.open_nursery() as nursery:
            nursery.start_soon(cancel, app, request_id)
            await exchange.body()

        stats = await app.health()
        assert (stats["totalRequests"], stats["cancelled"], stats["errors"]) == (1, 1, 0)
        assert app.logged("request_end")[0]["outcome"] == "cancelled"
        assert app.logged("request_cancelled") == [
            {"level": "info", "event": "request_cancelled", "id": request_id, "by": "owner"}
        ]
        [row] = (await store.usage.report()).recent
        assert row.outcome == "cancelled"


async def test_only_its_key_and_the_administrators_may_cancel_it(tmp_path: Path) -> None:
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend([A, DAY]), store=store, auth_mode="multi", admin_key=ADMIN) as app,
    ):
        alice, bob = [(await store.keys.create(name)).secret for name in ("alice", "bob")]
        for key, expected in ((alice, 200), (ADMIN, 200)):
            async with streaming(app, alice, stream=True) as (request_id, exchange):
                assert (await cancel(app, request_id))[0] == 401
                assert (await cancel(app, request_id, bob))[0] == 404
                assert (await cancel(app, request_id, key))[0] == expected
                exchange.disconnect()


async def test_all_holders_of_a_shared_key_are_one() -> None:
    settings = {"auth_mode": "shared", "proxy_api_key": "shared-secret", "admin_key": ADMIN}
    async with open_web_app(ScriptedBackend([A, DAY]), **settings) as app:
        async with streaming(app, "shared-secret", stream=True) as (request_id, exchange):
            assert (await cancel(app, request_id, "shared-secret"))[0] == 200
            exchange.disconnect()
        async with streaming(app, ADMIN, stream=True) as (request_id, exchange):
            assert (await cancel(app, request_id, "shared-secret"))[0] == 404
            exchange.disconnect()


@pytest.mark.parametrize(("key", "expected"), [("", 404), (ADMIN, 200)], ids=["anybody", "the administrator"])
async def test_of_an_open_server_beyond_the_loopback_only_the_administrator_may(key: str, expected: int) -> None:
    settings = {"bind": "0.0.0.0", "allow_open": True, "admin_key": ADMIN}
    async with (
        open_web_app(ScriptedBackend([A, DAY]), **settings) as app,
        streaming(app, stream=True) as (request_id, exchange),
    ):
        assert (await cancel(app, request_id, key))[0] == expected
        exchange.disconnect()
