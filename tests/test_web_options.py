"""Headers choose how one answer is told; without them it is told as the settings say, byte for byte."""

import json
from typing import Any

import pytest
from trio.testing import MockClock
from web_app import open_web_app

from ocp_trio.completion import Batch, Completed, TextDelta, ThinkingDelta
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

STOP: Batch = (Completed("stop"),)
SLOW: list[Step] = [(ThinkingDelta("hm"), TextDelta("a")), 25.0, (TextDelta("b"),), STOP]
BEAT = ": keepalive"


async def recorded(headers: dict[str, str] | None, *, stream: bool = True, **settings: Any) -> tuple[object, ...]:
    """Return a whole response: status, headers, and body, without the ids of request and answer."""
    async with open_web_app(ScriptedBackend(SLOW), **settings) as app, app.chat(headers, stream=stream) as exchange:
        await exchange.head()
        del exchange.headers["x-request-id"]
        body = await exchange.body()
    first = json.loads(body.split(b"\n\n")[0].removeprefix(b"data: "))
    body = body.replace(first["id"].encode(), b"ID").replace(str(first["created"]).encode(), b"CREATED")
    return exchange.status, exchange.headers, body


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("headers", "settings"),
    [
        ({"x-ocp-heartbeat": "0"}, {}),
        ({"x-ocp-heartbeat": "0"}, {"heartbeat_interval": 10.0}),
        ({"x-ocp-heartbeat": "600000"}, {}),
        ({"x-ocp-heartbeat-format": "empty-delta"}, {}),
        ({"x-ocp-reasoning": "0"}, {}),
        ({"x-ocp-reasoning": "0"}, {"reasoning_content": True}),
    ],
)
async def test_what_is_off_does_not_change_one_byte(
    autojump_clock: MockClock, headers: dict[str, str], settings: dict[str, Any], stream: bool
) -> None:
    assert await recorded(headers, stream=stream, **settings) == await recorded(None, stream=stream)


@pytest.mark.parametrize(
    ("headers", "settings"),
    [
        ({"x-ocp-heartbeat": "10000"}, {"heartbeat_interval": 10.0}),
        ({"x-ocp-heartbeat": "10000", "x-ocp-heartbeat-format": "comment-line"},
         {"heartbeat_interval": 10.0, "heartbeat_format": "comment-line"}),
        ({"x-ocp-heartbeat": "10000", "x-ocp-heartbeat-format": "empty-delta"},
         {"heartbeat_interval": 10.0, "heartbeat_format": "empty-delta"}),
        ({"x-ocp-reasoning": "1", "x-ocp-heartbeat": "0"}, {"reasoning_content": True}),
    ],
)  # fmt: skip
async def test_a_header_overrides_its_setting(
    autojump_clock: MockClock, headers: dict[str, str], settings: dict[str, Any]
) -> None:
    by_header = await recorded(headers, heartbeat_interval=3.0)

    assert by_header == await recorded(None, **settings)
    assert by_header != await recorded(None)


async def test_a_plain_answer_tells_its_reasoning_if_the_header_asks_for_it(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend(SLOW)) as app:
        _, body = await app.ask({"x-ocp-reasoning": "1"})

    assert json.loads(body)["choices"][0]["message"]["reasoning_content"] == "hm"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-ocp-heartbeat", "99"),
        ("x-ocp-heartbeat", "600001"),
        ("x-ocp-heartbeat", "-1"),
        ("x-ocp-heartbeat", "1.5"),
        ("x-ocp-heartbeat", "15s"),
        ("x-ocp-heartbeat", ""),
        ("x-ocp-heartbeat", "9" * 30),
        ("x-ocp-heartbeat", "1000, 2000"),
        ("x-ocp-heartbeat-format", "ping"),
        ("x-ocp-heartbeat-format", "Comment"),
        ("x-ocp-heartbeat-format", ""),
        ("x-ocp-reasoning", "true"),
        ("x-ocp-reasoning", "2"),
        ("x-ocp-reasoning", ""),
    ],
)
async def test_nonsense_is_a_400_that_names_the_header_and_starts_nothing(name: str, value: str, stream: bool) -> None:
    backend = ScriptedBackend([STOP])

    async with open_web_app(backend) as app:
        status, body = await app.ask({name: value}, stream=stream)

    error = json.loads(body)["error"]
    assert (status, error["type"], error["param"]) == (400, "invalid_request_error", name)
    assert name in error["message"]
    assert backend.requests == []
