"""A plain request gets one object, with the status that it deserves."""

import json

import trio
from trio.testing import MockClock
from web_app import open_web_app

from ocp_trio.completion import Batch, Completed, TextDelta, ThinkingDelta, Usage
from ocp_trio.errors import UpstreamAuthError
from ocp_trio.testing import ScriptedBackend

STOP: Batch = (Completed("length", Usage(input=3, output=5, cache_read=1000, cache_write=200)),)


async def test_the_whole_answer_is_one_object() -> None:
    script: list[Batch] = [(TextDelta("Hel"), ThinkingDelta("hm")), (TextDelta("lo"),), STOP]

    async with open_web_app(ScriptedBackend(script)) as app:
        status, body = await app.ask(model="scripted")

    answer = json.loads(body)
    assert (status, answer["object"], answer["model"]) == (200, "chat.completion", "scripted")
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["prompt_tokens"] == 1203
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 1000, "cache_write_tokens": 200}


async def test_it_is_sent_when_the_answer_is_complete_not_when_the_upstream_has_been_cleaned_up(
    autojump_clock: MockClock,
) -> None:
    async with open_web_app(ScriptedBackend([2.0, STOP], clean_up=4)) as app, app.chat() as exchange:
        began = trio.current_time()
        await exchange.head()
        assert trio.current_time() - began == 2
        await exchange.body()


async def test_an_upstream_error_is_a_status() -> None:
    async with open_web_app(ScriptedBackend([UpstreamAuthError("log in")])) as app, app.chat() as exchange:
        assert await exchange.head() == 401
        assert exchange.headers["x-should-retry"] == "false"
        error = json.loads(await exchange.body())["error"]

    assert error == {"message": "log in", "type": "authentication_error", "param": None, "code": "upstream_auth"}
