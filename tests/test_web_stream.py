"""A stream says at all times that it is alive, and how it ended."""

import json

import pytest
from trio.testing import MockClock
from web_app import frames, open_web_app

from ocp_trio.completion import Batch, Completed, TextDelta, TextEnd, Usage
from ocp_trio.errors import (
    BackendUnavailableError,
    ChildSpawnError,
    QueueFullError,
    UpstreamError,
    UpstreamIncompleteError,
)
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

BEAT = ": keepalive"
STOP: Batch = (Completed("stop", Usage(input=10, output=5)),)


def text(words: str) -> Batch:
    return (TextDelta(words),)


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
