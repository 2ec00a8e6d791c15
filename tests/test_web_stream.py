"""A stream says at all times that it is alive, and how it ended."""

import json

import pytest
import trio
from trio.testing import MockClock
from web_app import frames, open_web_app, timeline

from ocp_trio.completion import Activity, Batch, Completed, TextDelta, TextEnd, ThinkingDelta, Usage
from ocp_trio.errors import (
    BackendUnavailableError,
    ChildSpawnError,
    QueueFullError,
    UpstreamError,
    UpstreamIncompleteError,
)
from ocp_trio.openai.sse import COMMENT
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

BEAT = ": keepalive"
STOP: Batch = (Completed("stop", Usage(input=10, output=5)),)


def text(words: str) -> Batch:
    return (TextDelta(words),)


async def test_headers_and_role_come_at_once_and_keep_proxies_from_buffering(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([5.0, text("a"), STOP])) as app, app.chat(stream=True) as exchange:
        began = trio.current_time()
        await exchange.head()
        assert (exchange.status, trio.current_time()) == (200, began)
        assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert exchange.headers["cache-control"] == "no-cache, no-transform"
        assert exchange.headers["x-accel-buffering"] == "no"
        assert exchange.headers["x-request-id"].startswith("req_")
        assert "content-length" not in exchange.headers
        assert frames(await exchange.body()) == ["role", "a", "finish stop", "[DONE]"]


async def test_heartbeats_fill_the_silence_before_the_first_byte_and_in_mid_stream(autojump_clock: MockClock) -> None:
    script: list[Step] = [25.0, text("a"), 9.9, text("b"), 10.5, STOP]

    async with (
        open_web_app(ScriptedBackend(script), heartbeat_interval=10.0) as app,
        app.chat(stream=True) as exchange,
    ):
        seen = await timeline(exchange)

    assert seen == [
        (0, "role"),
        (10, BEAT),
        (20, BEAT),
        (25, "a"),
        (34.9, "b"),
        (44.9, BEAT),
        (45.4, "finish stop"),
        (45.4, "[DONE]"),
    ]


async def test_a_heartbeat_is_exactly_one_comment(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend([12.0, STOP]), heartbeat_interval=10.0) as app,
        app.chat(stream=True) as exchange,
    ):
        await exchange.head()
        pieces = [piece async for piece in exchange.pieces()]

    assert pieces[1] == b": keepalive\n\n"


async def test_without_the_setting_not_one_byte_differs(autojump_clock: MockClock) -> None:
    script: list[Step] = [30.0, text("a"), 500.0, text("b"), STOP]
    bodies = []
    for settings in ({}, {"heartbeat_interval": 1e6}):
        async with open_web_app(ScriptedBackend(script), **settings) as app, app.chat(stream=True) as exchange:
            await exchange.head()
            del exchange.headers["x-request-id"]
            body = await exchange.body()
            first = json.loads(body.split(b"\n\n")[0].removeprefix(b"data: "))
            body = body.replace(first["id"].encode(), b"ID").replace(str(first["created"]).encode(), b"CREATED")
            bodies.append((exchange.headers, body))
            assert app.logged("heartbeat_active") == []

    assert bodies[0] == bodies[1]


async def test_one_log_line_tells_of_the_first_heartbeat_of_each_affected_stream(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([25.0, STOP]), heartbeat_interval=10.0) as app:
        await app.ask(stream=True, session_id="conv-1")
        await app.ask({"x-conversation-id": "conv-2"}, stream=True)
        await app.ask(stream=True)

        logged = app.logged("heartbeat_active")

    assert logged == [
        {"level": "info", "event": "heartbeat_active", "session": session, "intervalMs": 10_000}
        for session in ("conv-1", "conv-2", None)
    ]


async def test_a_healthy_stream_logs_no_heartbeat(autojump_clock: MockClock) -> None:
    script: list[Step] = [step for word in range(50) for step in (9.0, text(f"{word} "))]

    async with open_web_app(ScriptedBackend([*script, STOP]), heartbeat_interval=10.0) as app:
        _, body = await app.ask(stream=True)

        assert app.logged("heartbeat_active") == []
    assert COMMENT not in body


async def test_activity_that_no_client_sees_does_not_postpone_a_heartbeat(autojump_clock: MockClock) -> None:
    script: list[Step] = [6.0, (Activity("ping"),), 6.0, (), 6.0, (ThinkingDelta("hm"),), 3.0, STOP]

    async with (
        open_web_app(ScriptedBackend(script), heartbeat_interval=10.0) as app,
        app.chat(stream=True) as exchange,
    ):
        seen = await timeline(exchange)

    assert seen == [(0, "role"), (10, BEAT), (20, BEAT), (21, "finish stop"), (21, "[DONE]")]


async def test_a_batch_is_one_body_write_and_the_end_is_in_the_last_one(autojump_clock: MockClock) -> None:
    burst: Batch = tuple(TextDelta(str(number)) for number in range(1000))

    async with open_web_app(ScriptedBackend([burst, (TextEnd(), *STOP)])) as app, app.chat(stream=True) as exchange:
        await exchange.head()
        pieces = [frames(piece) async for piece in exchange.pieces()]

    assert pieces == [["role"], [str(number) for number in range(1000)], ["finish stop", "[DONE]"]]


async def test_a_stream_that_outlasts_quarts_own_limit_goes_on(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([300.0, text("a"), 300.0, STOP]), timeout=1000.0) as app:
        _, body = await app.ask(stream=True)

    assert frames(body) == ["role", "a", "finish stop", "[DONE]"]


async def test_usage_stands_between_the_finish_and_the_end_if_it_was_asked_for() -> None:
    async with open_web_app(ScriptedBackend([text("a"), STOP])) as app:
        _, body = await app.ask(stream=True, stream_options={"include_usage": True})

    assert frames(body) == ["role", "a", "finish stop", "usage", "[DONE]"]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ChildSpawnError("could not be started"), 503, "backend_unavailable"),
        (BackendUnavailableError("no backend"), 503, "backend_unavailable"),
        (QueueFullError("full", retry_after=7), 429, "rate_limit_exceeded"),
    ],
)
async def test_what_fails_before_anything_is_started_is_json_with_its_status(
    error: UpstreamError, status: int, code: str
) -> None:
    async with open_web_app(ScriptedBackend([], refuse=error)) as app, app.chat(stream=True) as exchange:
        assert await exchange.head() == status
        assert int(exchange.headers["retry-after"]) >= 1
        assert json.loads(await exchange.body())["error"]["code"] == code


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([text("a"), UpstreamError("broken")], ["role", "a", "error server_error upstream_error", "[DONE]"]),
        ([UpstreamIncompleteError("ended")], ["role", "error server_error upstream_incomplete", "[DONE]"]),
        ([text("a")], ["role", "a", "error server_error upstream_incomplete", "[DONE]"]),
        ([text("a"), ZeroDivisionError()], ["role", "a", "error server_error internal_error", "[DONE]"]),
        ([(TextDelta("a"), *STOP), text("late")], ["role", "a", "finish stop", "[DONE]"]),
    ],
    ids=["an upstream error", "an early end", "no terminal", "a defect of ours", "something after the terminal"],
)
async def test_every_stream_ends_with_one_finish_or_one_error(script: list[Step], expected: list[str]) -> None:
    async with open_web_app(ScriptedBackend(script)) as app:
        status, body = await app.ask(stream=True)

    assert (status, frames(body)) == (200, expected)


async def test_with_late_headers_an_early_failure_keeps_its_status(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([(Activity("init"),), 3.0, UpstreamError("broken")])

    async with open_web_app(backend, early_headers=False) as app:
        status, body = await app.ask(stream=True)

    assert (status, json.loads(body)["error"]["code"]) == (502, "upstream_error")


@pytest.mark.parametrize(
    ("script", "head_at", "expected"),
    [
        ([3.0, text("a"), STOP], 3, ["role", "a", "finish stop", "[DONE]"]),
        ([25.0, STOP], 10, ["role", BEAT, BEAT, "finish stop", "[DONE]"]),
    ],
    ids=["first event", "first heartbeat"],
)
async def test_late_headers_come_with_the_first_event_or_the_first_heartbeat(
    autojump_clock: MockClock, script: list[Step], head_at: float, expected: list[str]
) -> None:
    async with (
        open_web_app(ScriptedBackend(script), early_headers=False, heartbeat_interval=10.0) as app,
        app.chat(stream=True) as exchange,
    ):
        began = trio.current_time()
        await exchange.head()
        assert trio.current_time() - began == head_at
        assert frames(await exchange.body()) == expected
