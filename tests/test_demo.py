"""The demo model needs nothing, and shows what a heartbeat is for."""

import json

from trio.testing import MockClock
from web_app import frames, open_web_app, timeline

from ocp_trio.demo import DemoBackend


async def test_it_answers_token_by_token_with_a_pause_that_heartbeats_fill(autojump_clock: MockClock) -> None:
    async with (
        open_web_app(DemoBackend(), heartbeat_interval=2.0) as app,
        app.chat(model="demo", stream=True) as exchange,
    ):
        seen = await timeline(exchange)

    words = [frame for _, frame in seen if frame not in {"role", ": keepalive", "finish stop", "[DONE]"}]
    assert "".join(words).startswith("This is the demo model")
    assert len(words) > 30
    assert [frame for _, frame in seen].count(": keepalive") == 3


async def test_it_serves_no_other_model() -> None:
    async with open_web_app(DemoBackend()) as app:
        status, body = await app.ask(model="gpt-4", stream=True)

    assert status == 404
    assert b"model_not_found" in body


async def test_a_plain_answer_is_the_same_text(autojump_clock: MockClock) -> None:
    async with open_web_app(DemoBackend()) as app:
        _, streamed = await app.ask(model="demo", stream=True)
        _, whole = await app.ask(model="demo")

    assert "".join(frames(streamed)[1:-2]).encode() in whole


async def test_a_call_that_has_to_be_made_is_refused_rather_than_answered_with_words() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

    async with open_web_app(DemoBackend()) as app:
        status, body = await app.ask(model="demo", tools=[tool], tool_choice="required")

    assert status == 400
    assert json.loads(body)["error"]["param"] == "tool_choice"
