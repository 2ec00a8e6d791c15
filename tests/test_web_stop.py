"""A client's stop sequences end its answer, and the work for it."""

import json

import pytest
import trio
from scripted_attempts import USAGE, says
from trio.testing import MockClock
from web_app import frames, open_web_app, timeline

from ocp_trio.completion import Activity, Completed, TextDelta, ThinkingDelta
from ocp_trio.testing import ScriptedBackend


async def test_a_stream_ends_before_its_stop_sequence_and_its_upstream_with_it(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([(TextDelta("Hello E"),), 2.0, (TextDelta("ND of"),), 1e5, (Completed("stop"),)])

    async with open_web_app(backend) as app, app.chat(stream=True, stop="END") as exchange:
        seen = await timeline(exchange)
        assert backend.running == 0

    assert seen == [(0, "role"), (0, "Hello "), (2, "finish stop"), (2, "[DONE]")]
    assert trio.current_time() == 2


async def test_a_plain_answer_ends_before_it_and_tells_the_usage_so_far(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([(Activity("message_start", USAGE), TextDelta("one\n\ntwo")), 1e5])

    async with open_web_app(backend) as app:
        status, body = await app.ask(stop=["###", "\n\n"])

    answer = json.loads(body)
    assert (status, answer["choices"][0]["finish_reason"]) == (200, "stop")
    assert answer["choices"][0]["message"]["content"] == "one"
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (15, 5)


@pytest.mark.parametrize("stream", [True, False])
async def test_what_only_begins_like_one_is_sent(stream: bool) -> None:
    async with open_web_app(ScriptedBackend(says("Hello E", "NTER"))) as app:
        _, body = await app.ask(stream=stream, stop="END")

    if stream:
        assert frames(body) == ["role", "Hello ", "ENTER", "finish stop", "[DONE]"]
    else:
        assert json.loads(body)["choices"][0]["message"]["content"] == "Hello ENTER"


async def test_reasoning_is_not_searched() -> None:
    backend = ScriptedBackend([(ThinkingDelta("END"), TextDelta("a"), Completed("stop"))])

    async with open_web_app(backend, reasoning_content=True) as app:
        _, body = await app.ask(stop="END")

    assert json.loads(body)["choices"][0]["message"] == {
        "role": "assistant",
        "content": "a",
        "refusal": None,
        "reasoning_content": "END",
    }


async def test_a_stop_sequence_at_the_very_beginning_leaves_nothing() -> None:
    async with open_web_app(ScriptedBackend(says("END"))) as app:
        _, body = await app.ask(stream=True, stop="END")

    assert frames(body) == ["role", "finish stop", "[DONE]"]
