"""A client that asks for a form gets one JSON text of it, or is told that there is none."""

import json
from typing import Any

import pytest
import trio
from scripted_attempts import USAGE, ScriptedAttempts, says
from trio.testing import MockClock
from web_app import WebApp, frames, open_web_app, timeline

from ocp_trio.completion import Completed, TextDelta
from ocp_trio.errors import UpstreamAuthError
from ocp_trio.testing import ScriptedBackend

JSON_OBJECT = {"type": "json_object"}
BAD = says("Sorry.")
GOOD = says('{"a"', ":1}")
SORRY = "No usable JSON in 3 attempts: it is not JSON alone (JSON is malformed: invalid character (byte 0))"
REFUSAL = f"{SORRY}. The last answer was: Sorry."
BEAT = ": keepalive"


def by_schema(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}


async def message(backend: ScriptedBackend, **body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the choice and the usage of a plain answer."""
    async with open_web_app(backend) as app:
        status, answer = await app.ask(**{"response_format": JSON_OBJECT, **body})
    assert status == 200
    [choice] = json.loads(answer)["choices"]
    return choice, json.loads(answer)["usage"]


async def test_a_plain_answer_is_the_json_text_and_costs_what_all_attempts_cost() -> None:
    choice, usage = await message(ScriptedAttempts(BAD, GOOD))

    assert choice["message"] == {"role": "assistant", "content": '{"a":1}', "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (30, 10)


async def test_a_plain_refusal_has_no_content() -> None:
    choice, _ = await message(ScriptedAttempts(BAD))

    assert choice["message"] == {"role": "assistant", "content": None, "refusal": REFUSAL}
    assert choice["finish_reason"] == "stop"


async def test_the_number_of_attempts_is_a_setting() -> None:
    backend = ScriptedAttempts(BAD, BAD, GOOD)

    async with open_web_app(backend, structured_max_attempts=2) as app:
        _, body = await app.ask(response_format=JSON_OBJECT)

    assert json.loads(body)["choices"][0]["message"]["refusal"].startswith("No usable JSON in 2 attempts")


async def test_a_stream_beats_until_there_is_one_right_text_and_sends_it_whole(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts([4.0, *BAD], [(TextDelta('{"a"'),), 7.0, *GOOD[1:]])

    async with (
        open_web_app(backend, heartbeat_interval=5.0) as app,
        app.chat(stream=True, response_format=JSON_OBJECT) as exchange,
    ):
        seen = await timeline(exchange)

    assert seen == [(0, "role"), (5, BEAT), (10, BEAT), (11, '{"a":1}'), (11, "finish stop"), (11, "[DONE]")]


async def test_a_refusal_in_a_stream_is_a_delta() -> None:
    async with open_web_app(ScriptedAttempts(BAD)) as app:
        _, body = await app.ask(stream=True, response_format=JSON_OBJECT)

    chunk = json.loads(body.decode().split("\n\n")[1].removeprefix("data: "))
    assert chunk["choices"][0]["delta"] == {"refusal": REFUSAL}
    assert frames(body)[2:] == ["finish stop", "[DONE]"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_schema_that_is_none_is_a_400_and_starts_nothing(stream: bool) -> None:
    backend = ScriptedBackend(GOOD)

    async with open_web_app(backend) as app:
        status, body = await app.ask(stream=stream, response_format=by_schema({"type": "nonsense"}))

    error = json.loads(body)["error"]
    assert (status, error["code"]) == (400, "unsupported_value")
    assert error["param"] == "response_format.json_schema.schema"
    assert backend.requests == []


async def test_an_answer_that_was_cut_is_told_as_cut() -> None:
    choice, usage = await message(ScriptedBackend([(TextDelta('{"a":'), Completed("length", USAGE))]))

    assert (choice["message"]["content"], choice["finish_reason"]) == ('{"a":', "length")
    assert usage["completion_tokens"] == 5


@pytest.mark.parametrize("attempt", [0, 1])
async def test_an_upstream_error_keeps_its_status(attempt: int) -> None:
    backend = ScriptedAttempts(*[BAD] * attempt, [UpstreamAuthError("log in")])

    async with open_web_app(backend) as app:
        status, body = await app.ask(response_format=JSON_OBJECT)

    assert (status, json.loads(body)["error"]["code"]) == (401, "upstream_auth")


async def test_the_total_timeout_covers_all_attempts(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts([40.0, *BAD])

    async with open_web_app(backend, timeout=100.0) as app, app.chat(response_format=JSON_OBJECT) as exchange:
        began = trio.current_time()
        assert await exchange.head() == 504
        assert trio.current_time() - began == 100
        await exchange.body()

    assert (len(backend.requests), backend.running) == (3, 0)


async def test_a_disconnect_ends_the_attempt_and_there_is_no_other(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts([4.0, *BAD])

    async with open_web_app(backend) as app:
        began = trio.current_time()
        async with app.chat(response_format=JSON_OBJECT) as exchange:
            await trio.sleep(6)
            exchange.disconnect()

        assert trio.current_time() - began == 6
        assert (len(backend.requests), backend.running) == (2, 0)


async def test_a_shutdown_ends_the_attempt_and_there_is_no_other(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts([8.0, *BAD])

    async def drain(app: WebApp) -> None:
        await app.lifecycle.active.wait_value(1)
        await app.lifecycle.drain(10, 5)

    async with (
        open_web_app(backend) as app,
        trio.open_nursery() as nursery,
        app.chat(stream=True, response_format=JSON_OBJECT) as exchange,
    ):
        nursery.start_soon(drain, app)
        seen = await timeline(exchange)

    assert seen == [(0, "role"), (10, "error server_error shutting_down"), (10, "[DONE]")]
    assert (len(backend.requests), backend.running) == (2, 0)


async def test_it_is_told_before_the_last_attempt_has_been_cleaned_up(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts([1.0, *GOOD], clean_up=4)

    async with open_web_app(backend) as app, app.chat(response_format=JSON_OBJECT) as exchange:
        began = trio.current_time()
        await exchange.head()
        assert trio.current_time() - began == 1
        await exchange.body()


async def test_stop_sequences_end_each_attempt() -> None:
    backend = ScriptedAttempts(says('{"a":', "END}"), says('{"a":1}END'))

    choice, _ = await message(backend, stop="END")

    assert choice["message"]["content"] == '{"a":1}'
