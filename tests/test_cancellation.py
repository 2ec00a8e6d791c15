"""Nothing that a request started outlives it, whoever ends it."""

import json

import pytest
import trio
from trio.testing import MockClock
from web_app import WebApp, frames, open_web_app, timeline

from ocp_trio.completion import Batch, Completed, TextDelta
from ocp_trio.testing import ScriptedBackend

STOP: Batch = (Completed("stop"),)
A: Batch = (TextDelta("a"),)
DAY = 86_400.0


async def drain_once_running(app: WebApp) -> None:
    await app.lifecycle.active.wait_value(1)
    await app.lifecycle.drain(10, 5)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_disconnect_before_the_first_byte_ends_the_upstream_at_once(
    autojump_clock: MockClock, stream: bool
) -> None:
    backend = ScriptedBackend([DAY, STOP])

    async with open_web_app(backend) as app:
        began = trio.current_time()
        async with app.chat(stream=stream) as exchange:
            await trio.sleep(3)
            assert backend.running == 1
            exchange.disconnect()

        assert trio.current_time() - began == 3
        assert backend.running == 0
        assert (await app.health())["cancelled"] == 1


async def test_a_disconnect_in_mid_stream_ends_the_upstream_at_once(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, DAY, STOP])

    async with open_web_app(backend) as app:
        began = trio.current_time()
        async with app.chat(stream=True) as exchange:
            await exchange.head()
            assert frames(await exchange.receive_some()) == ["role"]
            assert frames(await exchange.receive_some()) == ["a"]
            await trio.sleep(7)
            exchange.disconnect()

        assert trio.current_time() - began == 7
        assert backend.running == 0


async def test_a_client_that_does_not_read_does_not_keep_the_upstream_past_the_total_timeout(
    autojump_clock: MockClock,
) -> None:
    backend = ScriptedBackend([A, A, A, STOP])

    async with open_web_app(backend, timeout=60.0) as app, app.chat(stream=True) as exchange:
        await exchange.head()
        await trio.sleep(59)
        assert backend.running == 1
        await trio.sleep(1.5)
        assert backend.running == 0
        exchange.disconnect()


async def test_the_clean_up_of_an_upstream_delays_nobody_that_is_told_the_end(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, DAY], clean_up=5)

    async with open_web_app(backend, timeout=60.0) as app, app.chat(stream=True) as exchange:
        seen = await timeline(exchange)
        assert backend.running == 1

    assert seen[-2:] == [(60, "error timeout_error timeout"), (60, "[DONE]")]
    assert backend.running == 0


@pytest.mark.parametrize(
    "script",
    [[DAY], [A, DAY], [step for _ in range(100) for step in (9.0, A)]],
    ids=["silent from the start", "silent after a word", "never silent for long"],
)
async def test_the_total_timeout_ends_a_stream_with_one_error(
    autojump_clock: MockClock, script: list[Batch | float]
) -> None:
    async with open_web_app(ScriptedBackend(script), timeout=600.0) as app:
        async with app.chat(stream=True) as exchange:
            seen = await timeline(exchange)

        assert seen[-2:] == [(600, "error timeout_error timeout"), (600, "[DONE]")]
        assert (await app.health())["timeouts"] == 1


async def test_the_total_timeout_of_a_plain_request_is_a_504_that_quotes_nothing(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([(TextDelta("secret"),), DAY])

    async with open_web_app(backend, timeout=60.0) as app, app.chat() as exchange:
        began = trio.current_time()
        assert await exchange.head() == 504
        assert trio.current_time() - began == 60
        assert exchange.headers["x-should-retry"] == "false"
        error = json.loads(await exchange.body())["error"]

    assert (error["type"], error["code"]) == ("timeout_error", "timeout")
    assert "60 s" in error["message"]
    assert "secret" not in error["message"]


async def test_running_streams_get_the_grace_period_then_an_error_that_says_why(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, DAY], clean_up=2)

    async with open_web_app(backend) as app, trio.open_nursery() as nursery, app.chat(stream=True) as exchange:
        nursery.start_soon(drain_once_running, app)
        seen = await timeline(exchange)

    assert seen[-2:] == [(10, "error server_error shutting_down"), (10, "[DONE]")]
    assert backend.running == 0


async def test_a_stream_that_ends_within_the_grace_period_is_not_disturbed(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend([A, 9.0, STOP])) as app,
        trio.open_nursery() as nursery,
        app.chat(stream=True) as exchange,
    ):
        nursery.start_soon(drain_once_running, app)
        seen = await timeline(exchange)

        assert [frame for _, frame in seen] == ["role", "a", "finish stop", "[DONE]"]
    assert app.lifecycle.draining


async def test_a_new_request_during_shutdown_is_refused(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app:
        await app.lifecycle.drain(10, 5)
        async with app.chat(stream=True) as exchange:
            assert await exchange.head() == 503
            assert exchange.headers["retry-after"] == "5"
            assert json.loads(await exchange.body())["error"]["code"] == "shutting_down"


async def test_a_plain_request_that_is_cut_by_shutdown_is_a_503(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(ScriptedBackend([DAY])) as app,
        trio.open_nursery() as nursery,
        app.chat() as exchange,
    ):
        nursery.start_soon(drain_once_running, app)
        assert await exchange.head() == 503
        assert json.loads(await exchange.body())["error"]["code"] == "shutting_down"


async def test_each_request_is_counted_once_whatever_its_end(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([A, STOP])) as app:
        await app.ask(stream=True)
        await app.ask()
        async with app.chat(stream=True) as exchange:
            await exchange.head()
            exchange.disconnect()
        stats = await app.health()

    assert stats["totalRequests"] == 3
    assert (stats["succeeded"], stats["errors"], stats["timeouts"], stats["cancelled"]) == (2, 0, 0, 1)
    assert stats["activeRequests"] == 0
