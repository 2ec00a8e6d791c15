"""Equal requests at once share one run of their upstream, each from its beginning, whoever leaves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest
import trio
import trio.testing
from memory_store import open_memory_store, rows
from web_app import WebApp, frames, open_web_app, timeline

from ocp_trio.completion import Completed, Started, TextDelta, Usage
from ocp_trio.errors import QueueFullError, UpstreamOverloadedError
from ocp_trio.store import Store
from ocp_trio.testing import AsgiExchange, ScriptedBackend
from ocp_trio.testing.backend import Step

TWO_WORDS: list[Step] = [10.0, (TextDelta("one"),), 10.0, (TextDelta("two"),), 10.0, (Completed("stop", Usage(3, 5)),)]
"""A word at 10 s, one at 20 s, the end at 30 s."""
FLOOD: list[Step] = [5.0, *[(TextDelta("x" * 100),)] * 100, (Completed("stop"),)]
"""Much at once, at 5 s."""
END = ["finish stop", "[DONE]"]


@asynccontextmanager
async def open_shared(
    backend: ScriptedBackend, *, max_bytes: int = 2**21, **settings: Any
) -> AsyncIterator[tuple[WebApp, Store]]:
    async with (
        open_memory_store(max_bytes) as store,
        open_web_app(backend, store=store, **{"cache_ttl": 60.0, **settings}) as app,
    ):
        yield app, store


async def listen(app: WebApp, after: float, into: list[tuple[float, str]], content: Any = "hi") -> None:
    """Ask ``after`` some seconds for a stream; note its frames by the second since the beginning of the test."""
    await trio.sleep(after)
    async with app.chat(stream=True, messages=[{"role": "user", "content": content}]) as exchange:
        into += [(after + at, frame) for at, frame in await timeline(exchange)]


async def test_whoever_comes_later_gets_the_whole_stream_and_then_hears_it_live(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend(TWO_WORDS)
    first: list[tuple[float, str]] = []
    second: list[tuple[float, str]] = []

    async with open_shared(backend) as (app, _), trio.open_nursery() as nursery:
        nursery.start_soon(listen, app, 0, first)
        nursery.start_soon(listen, app, 15, second)

    assert first == [(0, "role"), (10, "one"), (20, "two"), (30, "finish stop"), (30, "[DONE]")]
    assert second == [(15, "role"), (15, "one"), (20, "two"), (30, "finish stop"), (30, "[DONE]")]
    assert len(backend.requests) == 1


async def test_a_plain_request_shares_the_run_of_a_stream(autojump_clock: trio.testing.MockClock) -> None:
    backend = ScriptedBackend(TWO_WORDS)
    heard: list[tuple[float, str]] = []

    async with open_shared(backend) as (app, _), trio.open_nursery() as nursery:
        nursery.start_soon(listen, app, 0, heard)
        await trio.sleep(5)
        status, body = await app.ask()
        assert trio.current_time() == 30

    assert (status, b'"onetwo"' in body, len(backend.requests)) == (200, True, 1)


async def test_the_first_to_come_may_leave_and_nobody_else_notices(autojump_clock: trio.testing.MockClock) -> None:
    backend = ScriptedBackend(TWO_WORDS)
    stayed: list[tuple[float, str]] = []

    async with open_shared(backend) as (app, store), trio.open_nursery() as nursery:
        async with app.chat(stream=True) as leader:
            await leader.head()
            nursery.start_soon(listen, app, 5, stayed)
            await trio.sleep(15)
            leader.disconnect()
        assert (trio.current_time(), backend.running, store.flights.in_flight) == (15, 1, 1)

    assert [frame for _, frame in stayed] == ["role", "one", "two", *END]
    assert stayed[-1] == (30, "[DONE]")
    assert len(backend.requests) == 1


@pytest.mark.parametrize("clean_up", [0.0, 3.0])
async def test_the_last_to_leave_ends_the_run_and_stays_until_it_is_gone(
    autojump_clock: trio.testing.MockClock, clean_up: float
) -> None:
    backend = ScriptedBackend(TWO_WORDS, clean_up=clean_up)

    async with open_shared(backend) as (app, store):
        async with app.chat(stream=True) as first:
            await first.head()
            async with app.chat(stream=True) as second:
                await second.head()
                await trio.sleep(15)
                first.disconnect()
                await trio.testing.wait_all_tasks_blocked()
                assert backend.running == 1
                second.disconnect()
        assert trio.current_time() == 15 + clean_up
        assert (backend.running, store.flights.in_flight) == (0, 0)
        assert (await app.health())["cancelled"] == 2


async def test_a_run_that_nobody_follows_any_more_is_not_joined(autojump_clock: trio.testing.MockClock) -> None:
    backend = ScriptedBackend(TWO_WORDS, clean_up=3)
    heard: list[tuple[float, str]] = []

    async with open_shared(backend) as (app, _), trio.open_nursery() as nursery:
        nursery.start_soon(listen, app, 16, heard)
        async with app.chat(stream=True) as leader:
            await leader.head()
            await trio.sleep(15)
            leader.disconnect()

    assert heard[0] == (16, "role")
    assert heard[-1] == (46, "[DONE]")
    assert len(backend.requests) == 2


async def test_each_beats_in_its_own_silence(autojump_clock: trio.testing.MockClock) -> None:
    backend = ScriptedBackend([(TextDelta("one"),), 10.0, (Completed("stop"),)])
    first: list[tuple[float, str]] = []
    second: list[tuple[float, str]] = []

    async with open_shared(backend, heartbeat_interval=4.0) as (app, _), trio.open_nursery() as nursery:
        nursery.start_soon(listen, app, 0, first)
        nursery.start_soon(listen, app, 3, second)

    assert [at for at, frame in first if frame == ": keepalive"] == [4, 8]
    assert [at for at, frame in second if frame == ": keepalive"] == [7]


async def test_each_has_its_own_total_limit(autojump_clock: trio.testing.MockClock) -> None:
    backend = ScriptedBackend(TWO_WORDS)
    first: list[tuple[float, str]] = []
    second: list[tuple[float, str]] = []

    async with open_shared(backend, timeout=25.0) as (app, _), trio.open_nursery() as nursery:
        nursery.start_soon(listen, app, 0, first)
        nursery.start_soon(listen, app, 15, second)

    assert first[-2:] == [(25, "error timeout_error timeout"), (25, "[DONE]")]
    assert second[-2:] == [(30, "finish stop"), (30, "[DONE]")]


async def test_those_who_keep_joining_an_upstream_that_is_dead_do_not_keep_it_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([inf])
    heard: list[list[tuple[float, str]]] = [[] for _ in range(5)]

    async with open_shared(backend, timeout=25.0) as (app, _), trio.open_nursery() as nursery:
        for number, into in enumerate(heard):
            nursery.start_soon(listen, app, 20 * number, into)

    assert [into[-1] for into in heard] == [(at, "[DONE]") for at in (25, 45, 50, 85, 105)]
    assert len(backend.requests) == 2


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(QueueFullError("full", retry_after=7), 429, "rate_limit_exceeded"), (ZeroDivisionError(), 500, "internal_error")],
)
async def test_what_fails_before_anything_is_started_fails_all_with_its_status(
    autojump_clock: trio.testing.MockClock, error: Exception, status: int, code: str
) -> None:
    answers: list[tuple[int, bool]] = []
    backend = ScriptedBackend([], refuse=error)

    async def ask(app: WebApp) -> None:
        answered, body = await app.ask(stream=True)
        answers.append((answered, f'"{code}"'.encode() in body))

    async with open_shared(backend) as (app, _), trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask, app)

    assert answers == [(status, True)] * 3
    assert len(backend.requests) == 1


async def test_what_fails_in_mid_stream_fails_all_with_the_same_error_and_is_not_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend([(TextDelta("one"),), 10.0, UpstreamOverloadedError("busy", retry_after=9)])
    first: list[tuple[float, str]] = []
    second: list[tuple[float, str]] = []

    async with open_shared(backend) as (app, store):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen, app, 0, first)
            nursery.start_soon(listen, app, 5, second)
        await app.ask()

    assert [frame for _, frame in first] == ["role", "one", "error server_error overloaded", "[DONE]"]
    assert [frame for _, frame in second] == [frame for _, frame in first]
    assert [row.outcome for row in rows(store)] == ["overloaded"] * 3
    assert len(backend.requests) == 2


async def test_each_has_a_row_with_the_tokens_of_the_answer_that_it_got(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_shared(ScriptedBackend(TWO_WORDS)) as (app, store), trio.open_nursery() as nursery:
        nursery.start_soon(listen, app, 0, [])
        nursery.start_soon(listen, app, 15, [])

    assert [(row.outcome, row.tokens_out, row.response_chars) for row in rows(store)] == [("ok", 5, 6)] * 2
    assert {(row.first_delta_ms, row.total_ms) for row in rows(store)} == {(10_000, 30_000), (0, 15_000)}


async def test_its_cost_and_its_wait_are_counted_for_whoever_began_it(autojump_clock: trio.testing.MockClock) -> None:
    script: list[Step] = [(Started(5.0),), 10.0, (Completed("stop", Usage(3, 5, cost_usd=0.25)),)]

    async with open_shared(ScriptedBackend([5.0, *script])) as (app, store), trio.open_nursery() as nursery:
        for after in (0, 3, 12):
            nursery.start_soon(listen, app, after, [])

    costs_and_waits = [(row.total_ms, row.cost_usd, row.queue_wait_ms) for row in rows(store)]
    assert sorted(costs_and_waits) == [(3000, 0.0, 0), (12_000, 0.0, 2000), (15_000, 0.25, 5000)]


async def test_the_cache_tells_how_many_answers_are_being_made(autojump_clock: trio.testing.MockClock) -> None:
    async with open_shared(ScriptedBackend(TWO_WORDS)) as (app, _), trio.open_nursery() as nursery:
        for content in ("a", "a", "b"):
            nursery.start_soon(listen, app, 0, [], content)
        await trio.sleep(5)
        assert (await app.get("/cache/stats"))[1]["inflight"] == 2
        await trio.sleep(30)
        assert (await app.get("/cache/stats"))[1]["inflight"] == 0


@pytest.mark.parametrize(
    ("settings", "content"),
    [({"cache_ttl": inf}, "hi"), ({}, [{"type": "text", "text": "hi", "cache_control": {}}])],
    ids=["no cache", "asked not to"],
)
async def test_without_the_cache_each_request_runs_by_itself(
    autojump_clock: trio.testing.MockClock, settings: dict[str, Any], content: Any
) -> None:
    backend = ScriptedBackend(TWO_WORDS)

    async with open_shared(backend, **settings) as (app, _), trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(listen, app, 0, [], content)

    assert len(backend.requests) == 2


async def test_a_client_that_reads_slowly_stops_nobody_and_is_left_behind(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend(FLOOD)
    heard: list[tuple[float, str]] = []

    async with open_shared(backend, max_bytes=2000) as (app, store), app.chat(stream=True) as slow:
        await slow.head()
        await listen(app, 1, heard)
        # Only now: what it has not taken by then is gone.
        seen = frames(await slow.body())

    assert heard[-1] == (5, "[DONE]")
    assert sum(frame.startswith("x") for _, frame in heard) == 100
    assert seen[0] == "role"
    assert seen[-2:] == ["error server_error upstream_incomplete", "[DONE]"]
    assert sorted(row.outcome for row in rows(store)) == ["ok", "upstream_incomplete"]
    assert len(backend.requests) == 1


async def test_a_client_that_is_alone_and_reads_slowly_stops_its_upstream_and_loses_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend(FLOOD)

    async with open_shared(backend, max_bytes=2000) as (app, _), app.chat(stream=True) as slow:
        await slow.head()
        await trio.sleep(500)
        assert backend.running == 1
        seen = frames(await slow.body())

    assert sum(frame.startswith("x") for frame in seen) == 100
    assert seen[-2:] == END


async def test_a_request_that_is_cancelled_by_its_id_leaves_the_others_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    backend = ScriptedBackend(TWO_WORDS, clean_up=1)
    stayed: list[tuple[float, str]] = []

    async def cancel(app: WebApp, exchange: AsgiExchange) -> tuple[float, bool]:
        status, told = await app.get(f"/v1/requests/{exchange.headers['x-request-id']}", "DELETE")
        assert status == 200
        return trio.current_time(), told["gone"]

    async with open_shared(backend) as (app, _), trio.open_nursery() as nursery:
        async with app.chat(stream=True) as leader:
            await leader.head()
            nursery.start_soon(listen, app, 5, stayed)
            await trio.sleep(6)
            nursery.start_soon(leader.body)
            assert await cancel(app, leader) == (6, True)
        assert backend.running == 1

    assert stayed[-1] == (30, "[DONE]")


async def test_a_shutdown_ends_all_and_the_run_with_the_last(autojump_clock: trio.testing.MockClock) -> None:
    backend = ScriptedBackend([inf], clean_up=1)
    heard: list[list[tuple[float, str]]] = [[], []]

    async with open_shared(backend) as (app, _), trio.open_nursery() as nursery:
        for into in heard:
            nursery.start_soon(listen, app, 0, into)
        await trio.sleep(5)
        await app.lifecycle.drain(10, 7)
        assert (trio.current_time(), backend.running) == (16, 0)

    assert [into[-2:] for into in heard] == [[(15, "error server_error shutting_down"), (15, "[DONE]")]] * 2
