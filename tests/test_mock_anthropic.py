"""The mock of the Messages API does what its script says."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import trio
from mock_anthropic import MockAnthropic, api_error, open_mock_anthropic
from sse_script import (
    Answer,
    Arguments,
    BlockEnd,
    Fail,
    HttpAnswer,
    Ping,
    Raw,
    Signature,
    Sleep,
    Text,
    Thinking,
    ToolUse,
    Usage,
)

EVERYTHING = Answer(
    Thinking("h"),
    Thinking("m"),
    Signature("sig"),
    Ping(),
    Text("Hé"),
    Sleep(0.001),
    Text("llo"),
    BlockEnd(),
    Text("again"),
    ToolUse("toolu_1", "look"),
    Arguments('{"a"'),
    Arguments(": 1}"),
    stop_reason="tool_use",
    usage=Usage(input=1, output=2, cache_read=3, cache_write=4),
)


@pytest.fixture
async def mock() -> AsyncIterator[MockAnthropic]:
    with trio.fail_after(10):
        async with open_mock_anthropic() as mock:
            yield mock


@pytest.fixture
async def client(mock: MockAnthropic) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=mock.url, trust_env=False, timeout=5) as client:
        yield client


def question(text: str = "hi", *, stream: bool = True) -> dict[str, Any]:
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}


async def ask(client: httpx.AsyncClient, text: str = "hi", *, stream: bool = True) -> httpx.Response:
    return await client.post("/v1/messages", json=question(text, stream=stream))


def told(body: str) -> list[dict[str, Any]]:
    """Return the events of a stream, whose two names of each event must agree."""
    events = []
    for block in body.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def text_of(response: httpx.Response) -> str:
    return "".join(event["delta"]["text"] for event in told(response.text) if event["type"] == "content_block_delta")


async def test_an_event_stream_tells_every_step(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(EVERYTHING)

    response = await ask(client)

    assert response.headers["content-type"] == "text/event-stream"
    start, *middle, delta, stop = told(response.text)
    assert (start["message"]["id"], start["message"]["model"]) == ("msg_mock_0", "m")
    assert start["message"]["usage"] == {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
    }
    assert [tuple(event.values())[1:] for event in middle] == [
        (0, {"type": "thinking", "thinking": "", "signature": ""}),
        (0, {"type": "thinking_delta", "thinking": "h"}),
        (0, {"type": "thinking_delta", "thinking": "m"}),
        (0, {"type": "signature_delta", "signature": "sig"}),
        (),
        (0,),
        (1, {"type": "text", "text": ""}),
        (1, {"type": "text_delta", "text": "Hé"}),
        (1, {"type": "text_delta", "text": "llo"}),
        (1,),
        (2, {"type": "text", "text": ""}),
        (2, {"type": "text_delta", "text": "again"}),
        (2,),
        (3, {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}),
        (3, {"type": "input_json_delta", "partial_json": '{"a"'}),
        (3, {"type": "input_json_delta", "partial_json": ": 1}"}),
        (3,),
    ]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert delta["usage"] == {"output_tokens": 2}
    assert stop == {"type": "message_stop"}


async def test_who_does_not_stream_gets_the_same_as_one_message(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(EVERYTHING)

    message = (await ask(client, stream=False)).json()

    assert message["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Héllo"},
        {"type": "text", "text": "again"},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": 1}},
    ]
    assert (message["stop_reason"], message["usage"]["output_tokens"]) == ("tool_use", 2)


async def test_answers_come_in_order_and_the_last_one_again(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Text("one")), Answer(Text("two")))

    assert [text_of(await ask(client)) for _ in range(3)] == ["one", "two", "two"]


async def test_a_marker_in_the_last_user_text_chooses_a_script(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Text("other")))
    mock.script(Answer(Text("a1")), Answer(Text("a2")), on="[[a]]")

    texts = [text_of(await ask(client, text)) for text in ("say [[a]]", "hi", "[[a]]")]

    assert texts == ["a1", "other", "a2"]


async def test_raw_bytes_stand_as_they_are(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Raw(b": note\n\n"), Text("x"), Raw(b"data: \xff")))

    body = (await ask(client)).content

    assert b"\n\n: note\n\nevent: content_block_start" in body
    assert b"data: \xffevent: content_block_stop" in body


async def test_an_error_event_is_the_last_of_its_stream(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Text("par"), Fail("api_error", "broke"), Text("tial")))

    *_, delta, error = told((await ask(client)).text)

    assert delta["delta"] == {"type": "text_delta", "text": "par"}
    assert error["error"] == {"type": "api_error", "message": "broke"}


async def test_who_does_not_stream_gets_it_as_a_status(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Text("par"), Fail()))

    response = await ask(client, stream=False)

    assert response.status_code == 529
    assert response.json()["error"] == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
async def test_an_error_has_its_type_and_headers(
    mock: MockAnthropic, client: httpx.AsyncClient, status: int, kind: str
) -> None:
    mock.script(api_error(status, "why", headers={"retry-after": "7"}))

    response = await ask(client)

    assert (response.status_code, response.headers["retry-after"]) == (status, "7")
    assert response.json() == {
        "type": "error",
        "error": {"type": kind, "message": "why"},
        "request_id": "req_mock",
    }


async def test_an_error_may_have_any_body(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(HttpAnswer(503, b"<html>", {"content-type": "text/html"}))

    response = await ask(client)

    assert (response.status_code, response.text, response.headers["content-type"]) == (503, "<html>", "text/html")
