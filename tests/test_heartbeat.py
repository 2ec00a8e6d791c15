"""A heartbeat says in each silence that the stream is alive, and does nothing else."""

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock
from upstream import Timeline, Upstream, open_guarded
from web_app import frames, open_web_app, timeline
from writer import Writer, exchange

from ocp_trio.completion import Activity, Batch, Completed, CompletionRequest, TextDelta, ThinkingDelta
from ocp_trio.errors import UpstreamAuthError, UpstreamError
from ocp_trio.openai.sse import COMMENT
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

RUNS = 200
"""Trio reverses the order of the tasks that become runnable in one instant, or not, by chance."""
BEAT = ": keepalive"
STOP: Batch = (Completed("stop"),)
SLOW: list[Step] = [(ThinkingDelta("hm"), TextDelta("a")), 25.0, (TextDelta("b"),), STOP]


def beats(*times: float) -> Timeline:
    return [(time, "beat") for time in times]


def text(words: str) -> Batch:
    return (TextDelta(words),)


# In an exchange


async def test_it_beats_before_the_first_byte_and_in_mid_stream(autojump_clock: MockClock) -> None:
    seen = await exchange("25 P; 26 P; 47 T", interval=10)

    assert seen == [*beats(10, 20), (25, "P"), (26, "P"), *beats(36, 46), (47, "T")]


async def test_it_does_not_beat_in_a_healthy_stream(autojump_clock: MockClock) -> None:
    assert await exchange("9 P; 18 P; 27 P; 36 T", interval=10) == [(9, "P"), (18, "P"), (27, "P"), (36, "T")]


async def test_what_a_client_does_not_see_does_not_start_the_interval_anew(autojump_clock: MockClock) -> None:
    seen = await exchange("6 U; 12 U; 18 U; 23 T", interval=10)

    assert seen == [*beats(10, 20), (23, "T")]


async def test_there_is_none_in_a_burst_and_the_first_comes_one_interval_after_its_end(
    autojump_clock: MockClock,
) -> None:
    seen = await exchange("3" + " P" * 1000 + "; 15 T", interval=10)

    assert [item for _, item in seen[:1000]] == ["P"] * 1000  # row 39
    assert seen[1000:] == [*beats(13), (15, "T")]


async def test_it_stands_after_the_whole_frame_that_is_being_written(autojump_clock: MockClock) -> None:
    class InPieces(Writer):
        async def write(self, item: str) -> bool:
            if item != "P":
                return await super().write(item)
            for piece in ("P1", "P2", "P3"):
                self.seen.append((trio.current_time(), piece))
                await trio.sleep(3)
            return True

    seen = await exchange("5 P; 30 T", InPieces(), interval=6)

    assert seen == [(5, "P1"), (8, "P2"), (11, "P3"), *beats(20, 26), (30, "T")]  # row 34


async def test_a_client_that_does_not_read_finds_no_beat_when_it_reads_again(autojump_clock: MockClock) -> None:
    seen = await exchange("5 P; 110 T", Writer({"P": 100}), interval=10)

    assert seen == [(105, "P"), (110, "T")]  # row 35


async def test_one_that_stops_reading_at_a_beat_finds_that_one(autojump_clock: MockClock) -> None:
    seen = await exchange("105 T", Writer({"beat": 93}), interval=10)

    assert seen == [(103, "beat"), (105, "T")]


async def outcomes(play: Callable[[], Awaitable[Timeline]]) -> set[tuple[str, ...]]:
    """Return all that was written in many runs."""
    return {tuple(item for _, item in await play()) for _ in range(RUNS)}


async def test_nothing_follows_a_terminal_that_comes_when_a_beat_is_due(autojump_clock: MockClock) -> None:
    seen = await outcomes(lambda: exchange("5 P; 15 T", interval=10))

    # Whether the silence was broken in time is for chance to say; what ends the stream is not.
    assert seen <= {("P", "beat", "T"), ("P", "T")}  # row 36


async def test_nothing_follows_a_failure_that_comes_when_a_beat_is_due(autojump_clock: MockClock) -> None:
    seen = await outcomes(lambda: exchange("5 P; 15 end", interval=10))

    assert seen <= {("P", "beat", "UpstreamIncompleteError"), ("P", "UpstreamIncompleteError")}


async def test_no_timer_is_left_when_the_exchange_ends_in_the_interval(autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics()

    await exchange("5 P; 7 T", interval=10)

    after = trio.lowlevel.current_statistics()
    assert trio.current_time() == 7  # row 37
    assert (after.tasks_living, after.seconds_to_next_deadline) == (before.tasks_living, math.inf)


async def test_it_is_no_life_of_the_upstream(autojump_clock: MockClock) -> None:
    seen = await exchange(open_guarded(Upstream("0 P")), interval=1)

    assert seen == [(0, "P"), *beats(1, 2, 3, 4, 5), (5, "UpstreamStalledError")]  # row 17


async def test_it_goes_on_while_a_stalled_upstream_is_cleaned_up(autojump_clock: MockClock) -> None:
    seen = await exchange(open_guarded(Upstream("0 P", clean_up=5)), interval=4)

    assert seen == [(0, "P"), *beats(4, 8), (10, "UpstreamStalledError")]


# On a chat stream


async def test_it_fills_the_silence_before_the_first_text_and_in_mid_stream(
    autojump_clock: MockClock,
) -> None:
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


async def test_activity_that_no_client_sees_does_not_postpone_it(autojump_clock: MockClock) -> None:
    script: list[Step] = [6.0, (Activity("ping"),), 6.0, (), 6.0, (ThinkingDelta("hm"),), 3.0, STOP]

    async with (
        open_web_app(ScriptedBackend(script), heartbeat_interval=10.0) as app,
        app.chat(stream=True) as exchange,
    ):
        seen = await timeline(exchange)

    assert seen == [(0, "role"), (10, BEAT), (20, BEAT), (21, "finish stop"), (21, "[DONE]")]


@pytest.mark.parametrize(
    ("settings", "beat"),
    [
        ({}, b": keepalive\n\n"),
        ({"heartbeat_format": "comment"}, b": keepalive\n\n"),
        ({"heartbeat_format": "comment-line"}, b": keepalive\n"),
    ],
)
async def test_it_is_exactly_one_comment(autojump_clock: MockClock, settings: dict[str, Any], beat: bytes) -> None:
    async with (
        open_web_app(ScriptedBackend([12.0, STOP]), heartbeat_interval=10.0, **settings) as app,
        app.chat(stream=True) as exchange,
    ):
        await exchange.head()
        pieces = [piece async for piece in exchange.pieces()]

    assert pieces[1] == beat


async def test_it_may_be_an_empty_delta_of_the_same_answer(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend([12.0, STOP]), heartbeat_interval=10.0, heartbeat_format="empty-delta") as app,
        app.chat(stream=True) as exchange,
    ):
        await exchange.head()
        role, beat, _ = [piece async for piece in exchange.pieces()]

    assert role.count(b'"delta":{"role":"assistant","content":""}') == 1
    assert beat == role.replace(b'{"role":"assistant","content":""}', b"{}")


class Queued(ScriptedBackend):
    """One whose streams wait for 25 s before they start."""

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        await trio.sleep(25)
        async with super().stream(request) as batches:
            yield batches


async def test_a_stream_that_waits_for_its_turn_begins_with_the_first_beat(autojump_clock: MockClock) -> None:
    async with open_web_app(Queued([3.0, STOP]), heartbeat_interval=10.0) as app, app.chat(stream=True) as exchange:
        seen = await timeline(exchange)

    assert seen == [(10, "role"), (10, BEAT), (20, BEAT), (28, "finish stop"), (28, "[DONE]")]


async def test_one_log_line_tells_of_the_first_of_each_affected_stream(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([25.0, STOP]), heartbeat_interval=10.0) as app:
        await app.ask(stream=True, session_id="conv-1")
        await app.ask({"x-conversation-id": "conv-2"}, stream=True)
        await app.ask(stream=True)

        logged = app.logged("heartbeat_active")

    assert logged == [
        {"level": "info", "event": "heartbeat_active", "session": session, "intervalMs": 10_000}
        for session in ("conv-1", "conv-2", None)
    ]


async def test_a_healthy_stream_logs_none(autojump_clock: MockClock) -> None:
    script: list[Step] = [step for word in range(50) for step in (9.0, text(f"{word} "))]

    async with open_web_app(ScriptedBackend([*script, STOP]), heartbeat_interval=10.0) as app:
        _, body = await app.ask(stream=True)

        assert app.logged("heartbeat_active") == []
    assert COMMENT not in body


# Off


async def recorded(*, stream: bool, **settings: Any) -> tuple[object, ...]:
    """Return a whole response: status, headers, and body, without the ids of request and answer."""
    async with open_web_app(ScriptedBackend(SLOW), **settings) as app, app.chat(stream=stream) as exchange:
        await exchange.head()
        del exchange.headers["x-request-id"]
        body = await exchange.body()
        assert app.logged("heartbeat_active") == []
    first = json.loads(body.split(b"\n\n")[0].removeprefix(b"data: "))
    body = body.replace(first["id"].encode(), b"ID").replace(str(first["created"]).encode(), b"CREATED")
    return exchange.status, exchange.headers, body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {"heartbeat_interval": 1e6},
        {"heartbeat_format": "empty-delta"},
        {"nonstream_keepalive": 1e6},
        {"early_headers": False},
    ],
    ids=["interval", "format", "keep-alive of plain answers", "late headers"],
)
async def test_without_a_silence_that_long_not_one_byte_differs(
    autojump_clock: MockClock, settings: dict[str, Any], stream: bool
) -> None:
    assert await recorded(stream=stream, **settings) == await recorded(stream=stream)


@pytest.mark.parametrize(
    ("stream", "settings"), [(True, {"nonstream_keepalive": 10.0}), (False, {"heartbeat_interval": 10.0})]
)
async def test_the_setting_of_streams_and_that_of_plain_answers_do_not_touch_each_other(
    autojump_clock: MockClock, settings: dict[str, Any], stream: bool
) -> None:
    assert await recorded(stream=stream, **settings) == await recorded(stream=stream)


# For one request


async def test_a_header_starts_one_that_no_setting_has(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend(SLOW)) as app,
        app.chat({"X-OCP-Heartbeat": " 10000 "}, stream=True) as exchange,
    ):
        seen = await timeline(exchange)

        assert app.logged("heartbeat_active")[0]["intervalMs"] == 10_000
    assert seen == [
        (0, "role"),
        (0, "a"),
        (10, BEAT),
        (20, BEAT),
        (25, "b"),
        (25, "finish stop"),
        (25, "[DONE]"),
    ]


@pytest.mark.parametrize("milliseconds", [100, 600_000])
async def test_the_bounds_of_that_header_are_accepted(milliseconds: int) -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app:
        status, _ = await app.ask({"x-ocp-heartbeat": str(milliseconds)}, stream=True)

    assert status == 200


@pytest.mark.parametrize("settings", [{}, {"nonstream_keepalive": 10.0}])
async def test_such_a_header_does_not_touch_a_plain_answer(autojump_clock: MockClock, settings: dict[str, Any]) -> None:
    async with open_web_app(ScriptedBackend(SLOW), **settings) as app:
        _, plain = await app.ask()
        _, asked = await app.ask({"x-ocp-heartbeat": "100", "x-ocp-heartbeat-format": "empty-delta"})

    assert asked.count(b"\n") == plain.count(b"\n") == (2 if settings else 0)


# The headers of a stream


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


# Plain answers


async def test_line_feeds_keep_a_waiting_connection_open_if_that_is_asked_for(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([25.0, (TextDelta("a"),), STOP])

    async with open_web_app(backend, nonstream_keepalive=10.0) as app, app.chat() as exchange:
        began = trio.current_time()
        assert await exchange.head() == 200
        assert trio.current_time() - began == 10
        body = await exchange.body()

    assert body.startswith(b"\n\n{")
    assert json.loads(body)["choices"][0]["message"]["content"] == "a"


async def test_after_a_line_feed_an_error_comes_as_an_object_in_the_body(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([15.0, UpstreamAuthError("log in")])

    async with open_web_app(backend, nonstream_keepalive=10.0) as app:
        status, body = await app.ask()

    assert (status, json.loads(body)["error"]["code"]) == (200, "upstream_auth")


async def test_nothing_precedes_a_plain_answer_otherwise(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([500.0, STOP])) as app, app.chat() as exchange:
        assert await exchange.head() == 200
        assert int(exchange.headers["content-length"]) == len(await exchange.body())
