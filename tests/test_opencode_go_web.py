"""Through the whole application OpenCode Go's answers keep every promise that a stream makes to a client."""

import json
from typing import Any

import pytest
import trio
from mock_opencode import Bytes, chunk, refusal
from opencode_sequences import MODELS, both_flavours, open_go, script
from sse_script import Answer, Arguments, HttpAnswer, Raw, Sleep, Step, Text, Thinking, ToolUse, Usage, Wait, frame
from trio.testing import MockClock
from web_app import frames, open_web_app, timeline

BEAT = ": keepalive"
TOOLS = Answer(
    Thinking("hm"), Text("I look."), ToolUse("c1", "look"), Arguments('{"x"'), Arguments(":1}"), ToolUse("c2", "wait"),
    stop_reason="tool_use", usage=Usage(input=10, output=5, cache_read=2),
)  # fmt: skip


async def seen(answer: Answer, model: str, *, first: float = 1e9, idle: float = 1e9, **settings: Any) -> list[Any]:
    """Return what a client sees of an answer, and when."""
    async with open_go(first, idle) as go, open_web_app(go.backend, **settings) as app:
        go.provider.script(answer)
        async with app.chat(model=model, stream=True) as exchange:
            return await timeline(exchange)


def chunks(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().split("\n\n") if line.startswith("data: {")]


@both_flavours
async def test_tool_calls_come_with_their_id_and_name_first(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        go.provider.script(TOOLS)
        status, body = await app.ask(model=model, stream=True, stream_options={"include_usage": True})

    told = chunks(body)
    calls = [call for each in told for choice in each["choices"] for call in choice["delta"].get("tool_calls", ())]
    assert status == 200
    assert calls[0] == {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
    assert [(call["index"], call.get("id"), call["function"]["arguments"]) for call in calls] == [
        (0, "c1", ""),
        (0, None, '{"x"'),
        (0, None, ":1}"),
        (1, "c2", ""),
    ]
    assert told[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert told[-1]["usage"]["prompt_tokens"] in {10, 12}
    assert body.endswith(b"data: [DONE]\n\n")


@both_flavours
async def test_they_come_in_a_whole_answer_too(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        go.provider.script(TOOLS)
        status, body = await app.ask(model=model)

    [choice] = json.loads(body)["choices"]
    assert (status, choice["finish_reason"], choice["message"]["content"]) == (200, "tool_calls", "I look.")
    assert [call["function"] for call in choice["message"]["tool_calls"]] == [
        {"name": "look", "arguments": '{"x":1}'},
        {"name": "wait", "arguments": ""},
    ]


@both_flavours
async def test_a_round_of_tools_is_told_to_upstream_whole(autojump_clock: MockClock, model: str) -> None:
    look = {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"x":1}'}}
    messages = [
        {"role": "user", "content": "what is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a stone"},
    ]
    async with open_go() as go, open_web_app(go.backend) as app:
        status, _ = await app.ask(
            model=model,
            messages=messages,
            tools=[{"type": "function", "function": look}],
            tool_choice="required",
            stream=True,
        )
        asked = go.provider.requests[0].body

    assert status == 200
    if model == MODELS["openai"]:
        assert asked["messages"][1:] == [messages[1], messages[2]]
        assert asked["tools"] == [{"type": "function", "function": look}]
        assert asked["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    else:
        uses, results = (message["content"] for message in asked["messages"][1:])
        assert uses == [{"type": "tool_use", "id": "c1", "name": "look", "input": {"x": 1}}]
        assert results == [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a stone"}]}
        ]
        assert asked["tool_choice"] == {"type": "tool", "name": "look"}


SAMPLING: dict[str, Any] = {
    "temperature": 0.2,
    "top_p": 0.5,
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": -0.1,
}


@pytest.mark.parametrize(
    ("flavour", "taken"),
    [("openai", [*SAMPLING]), ("anthropic", ["temperature", "top_p"])],
    ids=["openai", "anthropic"],
)
async def test_upstream_draws_as_the_caller_says_where_its_model_lets_him(
    autojump_clock: MockClock, flavour: str, taken: list[str]
) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        async with app.chat(model=MODELS[flavour], user="u", **SAMPLING) as exchange:
            await exchange.head()
            ignored = exchange.headers["x-ocp-ignored"].split(", ")
            await exchange.body()
        asked = go.provider.requests[0].body

    assert {name: asked[name] for name in SAMPLING if name in asked} == {name: SAMPLING[name] for name in taken}
    assert ignored == ["user", *(name for name in SAMPLING if name not in taken)]


@both_flavours
async def test_the_callers_name_of_a_conversation_is_its_session_upstream(
    autojump_clock: MockClock, model: str
) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        for session, text in (("a", "one"), ("a", "two"), ("b", "one")):
            await app.ask({"x-session-id": session}, model=model, messages=[{"role": "user", "content": text}])
        await app.ask(model=model, conversation_id="a", messages=[{"role": "user", "content": "three"}])
        first, again, other, by_body = (request.headers["x-opencode-session"] for request in go.provider.requests)

    assert first == again == by_body != other


@pytest.mark.parametrize(("model", "thoughts"), [("deepseek-v4-pro", "hm"), ("kimi-k3", None)])
async def test_what_a_model_thought_goes_back_to_it_if_it_wants_that(
    autojump_clock: MockClock, model: str, thoughts: str | None
) -> None:
    answer = {"role": "assistant", "content": "ho", "reasoning_content": "hm"}
    messages = [{"role": "user", "content": "hi"}, answer, {"role": "user", "content": "go on"}]

    async with open_go() as go, open_web_app(go.backend) as app:
        await app.ask(model=model, messages=messages)
        said = go.provider.requests[0].body["messages"][1]

    assert (said["content"], said.get("reasoning_content")) == ("ho", thoughts)


@both_flavours
async def test_both_names_are_listed_and_served(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        for name in (model, f"opencode-go/{model}"):
            assert (await app.ask(model=name))[0] == 200
        status, listed = await app.get("/v1/models")

    assert status == 200
    assert f"opencode-go/{model}" in {each["id"] for each in listed["data"]}
    assert {each["owned_by"] for each in listed["data"]} == {"opencode-go"}


REFUSALS = [
    (refusal(401, "AuthError", "Invalid API key."), 401, "upstream_auth"),
    (refusal(429, "GoUsageLimitError", "limit", retry_after="51105"), 429, "insufficient_quota"),
    (refusal(400, "invalid_request_error", "odd"), 400, "unsupported_value"),
    (refusal(404, "ModelError", "none"), 404, "model_not_found"),
    (HttpAnswer(500, b"<html>500</html>", {"content-type": "text/html"}), 502, "upstream_error"),
    (refusal(503, "server_error", "none"), 503, "overloaded"),
]


@both_flavours
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("answer", "status", "code"), REFUSALS)
async def test_a_refusal_reaches_a_client_with_its_true_status(  # noqa: PLR0917 (pytest's)
    autojump_clock: MockClock, model: str, answer: HttpAnswer, status: int, code: str, stream: bool
) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        go.provider.script(answer)
        async with app.chat(model=model, stream=stream) as exchange:
            assert await exchange.head() == status
            body = await exchange.body()

    assert json.loads(body)["error"]["code"] == code
    assert b"html" not in body
    if status == 429:
        assert exchange.headers["retry-after"] == "51105"


# The sequences that need a client


@both_flavours
async def test_nothing_refreshes_the_total_limit(autojump_clock: MockClock, model: str) -> None:
    beats = "; ".join(f"{at} P" for at in range(0, 1000, 4))

    *deltas, error, done = await seen(script(beats, model), model, idle=5, timeout=600.0)  # row 15

    assert deltas[-1] in {(596, "P"), (600, "P")}
    assert (error, done) == ((600, "error timeout_error timeout"), (600, "[DONE]"))


@both_flavours
async def test_heartbeats_are_no_life(autojump_clock: MockClock, model: str) -> None:
    told = await seen(script("0 P", model), model, idle=10, heartbeat_interval=1.0)  # row 17

    *beats, error, done = told[2:]
    assert beats in ([(at, BEAT) for at in range(1, 10)], [(at, BEAT) for at in range(1, 11)])
    assert (error, done) == ((10, "error timeout_error stalled"), (10, "[DONE]"))


@both_flavours
async def test_they_fill_the_wait_for_headers_and_keep_alives_of_upstreams_do_not_stop_them(
    autojump_clock: MockClock, model: str
) -> None:
    pings = [step for _ in range(4) for step in (Sleep(5), Raw(b": ping\n\n"))]
    answer = Answer(*pings, Text("P"), before_headers=(Sleep(25),))

    told = await seen(answer, model, heartbeat_interval=10.0)

    assert told[:4] == [(10, "role"), (10, BEAT), (20, BEAT), (30, BEAT)] or told[:5] == [
        (10, "role"), (10, BEAT), (20, BEAT), (30, BEAT), (40, BEAT)
    ]  # fmt: skip
    assert told[-3:] == [(45, "P"), (45, "finish stop"), (45, "[DONE]")]


@both_flavours
async def test_a_beat_stands_only_between_whole_frames(autojump_clock: MockClock, model: str) -> None:
    [step, *_] = script("0 P", model).steps
    assert isinstance(step, Raw)
    third = len(step.data) // 3
    pieces: list[Step] = [
        Raw(step.data[:third]),
        Sleep(1),
        Raw(step.data[third:-third]),
        Sleep(1),
        Raw(step.data[-third:]),
    ]
    answer = Bytes(*pieces, Sleep(1), *script("0 T", model).steps)

    told = await seen(answer, model, heartbeat_interval=0.8)  # row 34

    beats, rest = [at for at, what in told if what == BEAT], [each for each in told if each[1] != BEAT]
    assert beats == [0.8, 1.6, 2.8]
    assert rest == [(0, "role"), (2, "P"), (3, "finish stop"), (3, "[DONE]")]


@both_flavours
async def test_a_client_that_does_not_read_finds_at_most_one_beat(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go, open_web_app(go.backend, heartbeat_interval=1.0) as app:
        go.provider.script(script("0 P; 1000 T", model))
        async with app.chat(model=model, stream=True) as exchange:
            await exchange.head()
            await trio.sleep(100)  # row 35
            found: list[str] = []
            with trio.move_on_after(0.5):
                while True:
                    found += frames(await exchange.receive_some())
            exchange.disconnect()

    assert "P" in found
    assert found.count(BEAT) <= 1


@both_flavours
async def test_nothing_follows_the_end_even_in_the_instant_of_a_beat(autojump_clock: MockClock, model: str) -> None:
    for _ in range(20):
        told = await seen(script("0 P; 2 T", model), model, heartbeat_interval=1.0)  # row 36

        assert told[-2:] == [(2, "finish stop"), (2, "[DONE]")]


@both_flavours
async def test_no_timer_is_left_behind(autojump_clock: MockClock, model: str) -> None:
    before = trio.lowlevel.current_statistics()

    await seen(script("0 P; 2.5 T", model), model, first=300, idle=120, heartbeat_interval=1.0)  # row 37

    after = trio.lowlevel.current_statistics()
    assert (after.tasks_living, after.seconds_to_next_deadline) == (
        before.tasks_living,
        before.seconds_to_next_deadline,
    )


@both_flavours
async def test_no_beat_stands_in_a_burst(autojump_clock: MockClock, model: str) -> None:
    [step, *_] = script("0 P", model).steps
    assert isinstance(step, Raw)
    answer = Bytes(*[Raw(step.data * 1000)] * 10, Sleep(1.5), *script("0 T", model).steps)

    told = await seen(answer, model, heartbeat_interval=1.0)  # row 39

    assert [what for _, what in told].count("P") == 10_000
    assert told[-3:] == [(1, BEAT), (1.5, "finish stop"), (1.5, "[DONE]")]


@both_flavours
async def test_a_client_that_leaves_ends_upstream_at_once(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        go.provider.script(script("0 P", model))
        async with app.chat(model=model, stream=True) as exchange:
            await exchange.head()
            await exchange.receive_some()
            await trio.sleep(1)
            exchange.disconnect()

        await go.provider.requests[0].closed.wait()
        assert trio.current_time() == 1


@both_flavours
@pytest.mark.parametrize("stream", [True, False])
async def test_so_does_one_that_leaves_before_upstream_has_answered(
    autojump_clock: MockClock, model: str, stream: bool
) -> None:
    async with open_go() as go, open_web_app(go.backend) as app:
        go.provider.script(Answer(before_headers=(Wait(trio.Event()),)))
        async with app.chat(model=model, stream=stream) as exchange:
            await trio.sleep(1)
            exchange.disconnect()

        await go.provider.requests[0].closed.wait()
        assert trio.current_time() == 1


async def test_an_error_in_mid_stream_is_one_frame_and_the_end(autojump_clock: MockClock) -> None:
    answer = Answer(Text("P"), Raw(frame('{"error":{"type":"overloaded_error"}}')), Raw(chunk({"content": "Q"})))

    assert [what for _, what in await seen(answer, "kimi-k2.6")] == [
        "role", "P", "error server_error overloaded", "[DONE]"
    ]  # fmt: skip
