"""Whoever watches the dashboard's events sees what runs, as it runs, and disturbs nothing by watching."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from trio.testing import MockClock
from web_app import WebApp, open_web_app

from ocp_trio.completion import Completed, TextDelta, Usage
from ocp_trio.errors import UpstreamError
from ocp_trio.openai.sse import COMMENT
from ocp_trio.store import open_store
from ocp_trio.testing import AsgiExchange, ScriptedBackend, open_asgi_exchange
from ocp_trio.testing.backend import Step
from ocp_trio.web.callers import ANYBODY
from ocp_trio.web.ended import Ended
from ocp_trio.web.feed import LIFE

EVENTS = "/dashboard/events"
A: Step = (TextDelta("ab"),)
STOP: Step = (Completed("stop", Usage(input=10, output=5)),)
DAY = 86_400.0
ADMIN = "admin-secret"


@asynccontextmanager
async def watching(app: WebApp, key: str = "") -> AsyncIterator[AsgiExchange]:
    """Watch for the length of a block."""
    headers = {"authorization": f"Bearer {key}"} if key else None
    async with open_asgi_exchange(app.asgi, EVENTS, method="GET", headers=headers) as exchange:
        assert await exchange.head() == 200
        yield exchange
        exchange.disconnect()


async def event(exchange: AsgiExchange) -> dict[str, Any]:
    """Return the next event."""
    piece = await exchange.receive_some()
    told: dict[str, Any] = json.loads(piece.removeprefix(b"data: ").removesuffix(b"\n\n"))
    return told


async def state(exchange: AsgiExchange) -> dict[str, Any]:
    """Return the state that the next event tells."""
    told: dict[str, Any] = (await event(exchange))["state"]
    return told


async def test_a_stream_is_seen_to_run_to_beat_and_to_end(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([2.5, A, A, 3.0, STOP])

    async with (
        open_web_app(backend, heartbeat_interval=1.7) as app,
        trio.open_nursery() as nursery,
        app.chat(stream=True) as chat,
    ):
        await chat.head()
        nursery.start_soon(chat.body)
        async with watching(app) as exchange:
            seen = [await event(exchange) for _ in range(5)]

    runs = [
        (each["now"], [[run[name] for name in ("lastLife", "deltas", "chars", "heartbeats")] for run in running])
        for each in seen
        for running in [each["state"]["running"]]
    ]
    assert runs == [
        (0, [[0, 0, 0, 0]]),
        (2, [[0, 0, 0, 1]]),
        (3, [[2.5, 2, 4, 1]]),
        (5, [[2.5, 2, 4, 2]]),
        (6, []),
    ]
    assert [each["state"]["deltas"] for each in seen] == [0, 0, 2, 2, 2]
    [run], request_id = seen[0]["state"]["running"], chat.headers["x-request-id"]
    assert [run[name] for name in ("id", "key", "model", "backend", "state", "arrived")] == [
        request_id, None, "scripted", "scripted", "running", 0
    ]  # fmt: skip
    assert seen[-1]["state"]["ended"] == [
        {
            "id": request_id,
            "key": None,
            "model": "scripted",
            "outcome": "ok",
            "message": None,
            "at": 5.5,
            "seconds": 5.5,
        }
    ]


async def test_what_waits_for_its_upstream_is_queued(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([STOP], wait=5.0)) as app, app.chat() as chat:
        await app.lifecycle.active.wait_value(1)
        async with watching(app) as exchange:
            [run] = (await state(exchange))["running"]
            assert (run["state"], run["lastLife"]) == ("queued", None)
        chat.disconnect()


async def test_nothing_is_told_twice_and_silence_is_filled(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app, watching(app) as exchange:
        await event(exchange)
        seen = [(await exchange.receive_some(), trio.current_time()) for _ in range(3)]

    assert seen == [(COMMENT, 10), (COMMENT, 20), (COMMENT, 30)]


async def test_an_error_is_remembered_with_what_its_client_was_told() -> None:
    async with open_web_app(ScriptedBackend([UpstreamError("upstream broke")])) as app:
        await app.ask()
        async with watching(app) as exchange:
            [ended] = (await state(exchange))["ended"]

    assert (ended["outcome"], ended["message"]) == ("upstream_error", "upstream broke")


async def test_failures_are_remembered_longer_than_successes() -> None:
    async with open_web_app(ScriptedBackend([STOP]), ScriptedBackend([])) as app:
        app.lifecycle.ended.extend(ended(number, failed=number < 40) for number in range(100))
        async with watching(app) as exchange:
            told = [each["id"] for each in (await state(exchange))["ended"]]

    assert told == [f"req_{number}" for number in (*range(20, 40), *range(90, 100))]


def ended(number: int, *, failed: bool) -> Ended:
    return Ended(
        request_id=f"req_{number}",
        owner=ANYBODY,
        model="m",
        backend="scripted",
        error=UpstreamError("it broke") if failed else None,
        left=False,
        at=number,
        seconds=1,
        first_delta=None,
        queued=0,
        deltas=1,
        heartbeats=0,
    )


async def test_each_key_sees_its_own_streams_and_the_administrator_all(tmp_path: Path) -> None:
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend([A, DAY]), store=store, auth_mode="multi", admin_key=ADMIN) as app,
    ):
        alice, bob = [(await store.keys.create(name)).secret for name in ("alice", "bob")]
        async with app.chat({"authorization": f"Bearer {alice}"}, stream=True) as chat:
            await chat.head()
            seen = {}
            for name, key in (("alice", alice), ("bob", bob), ("admin", ADMIN)):
                async with watching(app, key) as exchange:
                    told = await state(exchange)
                assert told["you"] == {"name": name, "admin": name == "admin"}
                seen[name] = [run["key"] for run in told["running"]]
            chat.disconnect()

        assert seen == {"alice": ["alice"], "bob": [], "admin": ["alice"]}
        async with watching(app, bob) as exchange:
            assert (await state(exchange))["ended"] == []


async def test_without_a_key_nothing_is_shown(tmp_path: Path) -> None:
    async with open_web_app(ScriptedBackend([STOP]), auth_mode="shared", proxy_api_key="shared") as app:
        assert (await app.get("/dashboard/events"))[0] == 401


async def test_of_an_open_server_beyond_the_loopback_nobody_sees_the_others(tmp_path: Path) -> None:
    backend = ScriptedBackend([A, DAY])
    async with open_web_app(backend, bind="0.0.0.0", allow_open=True) as app, app.chat(stream=True) as chat:
        await chat.head()
        async with watching(app) as exchange:
            assert (await state(exchange))["running"] == []
        chat.disconnect()


async def test_it_ends_as_soon_as_the_server_begins_to_stop(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend([A, 5.0, STOP])) as app,
        trio.open_nursery() as nursery,
        app.chat(stream=True) as chat,
        watching(app) as exchange,
    ):
        nursery.start_soon(chat.body)
        assert (await state(exchange))["status"] == "ok"
        await trio.sleep(1.5)
        nursery.start_soon(app.lifecycle.drain, 10, 5)
        told = [piece async for piece in exchange.pieces()]
        assert trio.current_time() == 1.5

    assert json.loads(told[-1].removeprefix(b"data: "))["state"]["status"] == "draining"


async def test_it_has_to_be_asked_for_anew_now_and_then_with_a_key_that_is_still_good(
    autojump_clock: MockClock,
) -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app, watching(app) as exchange:
        await exchange.body()

    assert trio.current_time() == LIFE


async def test_to_head_it_has_an_end() -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app:
        assert await app.get("/dashboard/events", "HEAD") == (200, None)


def tasks(task: trio.lowlevel.Task | None = None) -> int:
    """Return how many tasks there are."""
    task = task or trio.lowlevel.current_root_task()
    assert task is not None
    return 1 + sum(tasks(child) for nursery in task.child_nurseries for child in nursery.child_tasks)


async def test_fifty_that_come_and_go_share_a_look_and_leave_no_task() -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app:
        await app.health()
        before = tasks()

        async with AsyncExitStack() as stack:
            watchers = [await stack.enter_async_context(watching(app)) for _ in range(50)]
            told = {await each.receive_some() for each in watchers}
            assert tasks() > before + 50
        assert tasks() == before
    assert len({json.dumps(json.loads(each.removeprefix(b"data: "))["state"]) for each in told}) == 1


async def test_watching_is_no_completion() -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app, watching(app) as exchange:
        told = await state(exchange)

    assert (told["stats"]["totalRequests"], told["stats"]["activeRequests"]) == (0, 0)
