"""The backend asks once, asks well, and tells what it was refused with."""

import logging
from typing import Any

import pytest
import trio
from mock_opencode import KEY, chunk, refusal
from opencode_sequences import Go, ask, both_flavours, open_go, request, script
from sse_script import Answer, Arguments, Cut, HttpAnswer, Raw, Sleep, Step, Tell, Text, Thinking, ToolUse, Wait, frame
from trio.testing import MockClock

from ocp_trio import __version__
from ocp_trio.completion import (
    Activity,
    Completed,
    Event,
    Started,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.errors import (
    BackendUnavailableError,
    OcpError,
    SettingError,
)
from ocp_trio.opencode_go import open_opencode_go

PAGE = HttpAnswer(502, b"<html>502 Bad Gateway</html>", {"content-type": "text/html"})


async def events(go: Go, model: str, **fields: Any) -> list[Event]:
    """Return what an answer consists of, without what only shows life."""
    async with go.backend.stream(request(model, **fields)) as batches:
        return [event async for batch in batches for event in batch if not isinstance(event, Activity)]


@both_flavours
async def test_an_answer_comes_with_its_reasoning_its_calls_and_its_usage(
    autojump_clock: MockClock, model: str
) -> None:
    answer = Answer(
        Thinking("hm"), Text("He"), Text("llo"), ToolUse("c1", "look"), Arguments('{"x":'), Arguments("1}"),
        stop_reason="tool_use",
    )  # fmt: skip
    async with open_go() as go:
        go.provider.script(answer)

        assert await events(go, model) == [
            Started(),
            ThinkingDelta("hm"),
            ThinkingEnd(),
            TextDelta("He"),
            TextDelta("llo"),
            TextEnd(),
            ToolCallStart(0, "c1", "look"),
            ToolCallDelta(0, '{"x":'),
            ToolCallDelta(0, "1}"),
            ToolCallEnd(0),
            Completed("tool_calls", Usage(input=10, output=5)),
        ]


@both_flavours
async def test_the_answer_is_begun_when_upstream_has_begun_it(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        go.provider.script(Answer(Text("P"), before_headers=(Sleep(7),)))

        assert await ask(go.backend, model) == [(7, "S"), (7, "P"), (7, "T")]


@both_flavours
async def test_it_may_be_asked_for_by_either_name(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        await ask(go.backend, model)
        await ask(go.backend, f"opencode-go/{model}")

        assert [asked.body["model"] for asked in go.provider.requests] == [model, model]


async def test_a_model_that_is_not_served_is_not_asked_for(autojump_clock: MockClock) -> None:
    async with open_go() as go:
        assert await ask(go.backend, "gpt-4o") == [(0, "ModelNotFoundError")]
        assert go.provider.requests == []


# What is sent


async def test_each_flavour_has_its_path_and_its_way_to_show_the_key(autojump_clock: MockClock) -> None:
    async with open_go() as go:
        await ask(go.backend, "kimi-k2.6")
        await ask(go.backend, "minimax-m2.7")
        openai, anthropic = go.provider.requests

    assert (openai.method, openai.path) == ("POST", "/v1/chat/completions")
    assert openai.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in openai.headers
    assert (anthropic.method, anthropic.path) == ("POST", "/v1/messages")
    assert (anthropic.headers["x-api-key"], anthropic.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in anthropic.headers


@both_flavours
async def test_a_request_says_who_asks_and_in_which_conversation(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        await ask(go.backend, model, caller="a")
        await ask(go.backend, model, caller="a")
        await ask(go.backend, model, caller="b")
        first, second, third = (asked.headers for asked in go.provider.requests)

    assert first["user-agent"] == f"ocp-trio/{__version__}"
    assert first["x-opencode-session"] == second["x-opencode-session"] != third["x-opencode-session"]
    assert (first["accept"], first["accept-encoding"]) == ("text/event-stream", "identity")


@both_flavours
async def test_no_cookie_is_kept(autojump_clock: MockClock, model: str) -> None:
    cookie = {"content-type": "application/json", "set-cookie": "a=b; Path=/"}
    async with open_go() as go:
        go.provider.script(HttpAnswer(500, b"{}", cookie))
        await ask(go.backend, model)
        await ask(go.backend, model)

    assert not any("cookie" in asked.headers for asked in go.provider.requests)


# Bursts


@both_flavours
async def test_what_is_read_at_once_is_one_batch(autojump_clock: MockClock, model: str) -> None:
    reached, go_on = trio.Event(), trio.Event()
    one = script("0 P", model).steps[0]
    assert isinstance(one, Raw)
    async with open_go() as go:
        go.provider.script(Answer(Raw(one.data * 1000), Tell(reached), Wait(go_on)))
        sizes = []
        async with go.backend.stream(request(model)) as batches:
            async for batch in batches:
                sizes.append(len(batch))
                if sum(sizes) > 1000:
                    go_on.set()

    assert len(sizes) < 20


async def test_each_delta_is_told_when_it_comes(autojump_clock: MockClock) -> None:
    async with open_go() as go:
        assert await go.observe("0 P; 1 P; 1.001 P; 2 T", "kimi-k2.6") == [
            (0, "S"), (0, "P"), (1, "P"), (1.001, "P"), (2, "T")
        ]  # fmt: skip


async def test_a_frame_that_comes_in_pieces_is_told_when_it_is_whole(autojump_clock: MockClock) -> None:
    frame_ = chunk({"content": "P"})
    pieces: list[Step] = [Raw(frame_[:10]), Sleep(1), Raw(frame_[10:-1]), Sleep(1), Raw(frame_[-1:])]
    async with open_go() as go:
        go.provider.script(Answer(*pieces))

        assert await ask(go.backend, "kimi-k2.6") == [(0, "S"), (2, "P"), (2, "T")]


async def test_a_line_without_an_end_is_refused(autojump_clock: MockClock) -> None:
    async with open_go() as go:
        go.provider.script(Answer(Text("P"), *[Raw(b"data: " + b"x" * 2**20)] * 40))

        assert [letter for _, letter in await ask(go.backend, "kimi-k2.6")] == ["S", "P", "LineTooLongError"]


# Secrets, and what is logged


@both_flavours
async def test_the_key_is_in_no_log_no_repr_and_no_error(
    autojump_clock: MockClock, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    async with open_go(idle=5) as go:
        for answer in (Answer(Text("P")), script("0 P", model), PAGE, refusal(401, "AuthError", KEY)):
            go.provider.script(answer)
            try:
                async with go.backend.stream(request(model)) as batches:
                    shown += [repr(event) + str(event) async for batch in batches for event in batch]
                    shown += [repr(batches)]
            except OcpError as error:
                shown += [repr(error), str(error)]
        go.provider.refuse = 99
        go.provider.script(Answer(before_headers=(Cut("fin"),)))
        await ask(go.backend, model)
        shown += [repr(go.backend), str(go.backend)]

    assert caplog.records
    records = [str(vars(record)) + record.getMessage() for record in caplog.records]
    assert not any(KEY in text for text in records)
    assert not any(KEY in text for text in shown)


async def test_events_that_cannot_be_read_are_counted_in_the_log(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ocp_trio.opencode_go")
    async with open_go() as go:
        go.provider.script(Answer(Raw(frame("odd")), Raw(frame("odder")), Text("P")))
        await ask(go.backend, "kimi-k2.6")

    assert [(record.message, vars(record).get("count")) for record in caplog.records] == [("odd_events", 2)]


# Opening it


@pytest.mark.parametrize("key", ["", "  ", "a\nb", "schlüssel", "a\x00"])
async def test_a_key_that_no_header_can_carry_is_refused_without_being_told(key: str) -> None:
    with pytest.raises(BackendUnavailableError, match=r"^OPENCODE_API_KEY holds no key that can be sent$"):
        async with open_opencode_go(key):
            pass


async def test_white_space_round_it_does_no_harm(autojump_clock: MockClock) -> None:
    async with open_go(key=f" {KEY}\n") as go:
        assert (await ask(go.backend, "kimi-k2.6"))[-1][1] == "T"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "opencode.ai",
        "ftp://opencode.ai",
        "https://",
        "https://a:b@example.org",
        "http://localhost/?b",
        "http://localhost/#b",
    ],
)
async def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="OPENCODE_GO_BASE_URL"):
        async with open_opencode_go(KEY, base_url=url):
            pass


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_a_base_may_be_told_as_either_flavour_has_it(autojump_clock: MockClock, suffix: str) -> None:
    async with open_go() as go:
        base = f"http://provider.invalid/zen/go{suffix}"
        async with open_opencode_go(KEY, base_url=base, transport=go.provider.transport) as backend:
            await ask(backend, "kimi-k2.6")
            await ask(backend, "minimax-m2.7")

        assert [asked.path for asked in go.provider.requests] == ["/zen/go/v1/chat/completions", "/zen/go/v1/messages"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALL_PROXY", "socks5://proxy.invalid"), ("ALL_PROXY", "gopher://a"), ("SSL_CERT_FILE", "/nowhere/ca.pem")],
)
async def test_an_environment_that_cannot_be_used_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(BackendUnavailableError, match="the environment names a proxy or certificates"):
        async with open_opencode_go(KEY):
            pass


@pytest.mark.parametrize("limit", ["first_event_timeout", "idle_timeout", "keepalive_cap"])
async def test_a_limit_that_is_no_time_span_is_refused(limit: str) -> None:
    arguments: dict[str, Any] = {limit: -1.0}

    with pytest.raises(ValueError, match="-1"):
        async with open_opencode_go(KEY, **arguments):
            pass


async def test_its_limits_are_on_by_default() -> None:
    async with open_opencode_go(KEY) as backend:
        limits = backend._limits

    assert (limits.first_event, limits.idle, limits.keepalive_cap) == (300, 120, 300)
