"""The official client works with OpenCode Go's models through us as it does with the provider itself."""

import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from mock_opencode import KEY, open_mock_opencode, refusal
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from opencode_sequences import both_flavours, script
from scripted_server import ScriptedServer
from sse_script import Answer, Arguments, Sleep, Text, Thinking, ToolUse, Usage

from ocp_trio.completion import Backend
from ocp_trio.logs import LogRing
from ocp_trio.opencode_go import open_opencode_go
from ocp_trio.settings import Settings
from ocp_trio.web import Lifecycle, create_app

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"  # one red pixel
LOOK: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
LIMIT = 20
"""Seconds that a test may take; on an idle machine it is one."""


@pytest.fixture
async def mock() -> AsyncIterator[ScriptedServer]:
    with trio.fail_after(LIMIT):
        async with open_mock_opencode() as mock:
            yield mock


@pytest.fixture
async def url(mock: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with open_opencode_go(KEY, base_url=mock.url, idle_timeout=1) as backend, serving(backend) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=LIMIT, http_client=http) as client:
        yield client


@asynccontextmanager
async def serving(backend: Backend) -> AsyncIterator[str]:
    """Serve the web application on a port of the loopback for the length of a block."""
    app = create_app((backend,), Settings(), ring=LogRing(), lifecycle=Lifecycle())
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = Config()
    config.bind, config.graceful_timeout = [f"fd://{listener.detach()}"], 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, app, config)
        yield f"http://127.0.0.1:{port}"
        nursery.cancel_scope.cancel()


def chunks_of(client: openai.OpenAI, model: str) -> list[ChatCompletionChunk]:
    return list(
        client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )


def whole(client: openai.OpenAI, model: str) -> ChatCompletion:
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])


@both_flavours
async def test_a_stream_comes_with_its_calls_and_its_usage(
    mock: ScriptedServer, client: openai.OpenAI, model: str
) -> None:
    mock.script(
        Answer(
            Thinking("hm"),
            Text("Hé"),
            Sleep(0.3),
            Text("llo"),
            ToolUse("c1", "look"),
            Arguments('{"x": 1}'),
            stop_reason="tool_use",
            usage=Usage(input=10, output=5),
        )
    )

    chunks = await trio.to_thread.run_sync(chunks_of, client, f"opencode-go/{model}")

    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    first, *more = [call for delta in deltas for call in delta.tool_calls or ()]
    assert "".join(delta.content or "" for delta in deltas) == "Héllo"
    assert first.function
    assert (first.index, first.id, first.function.name) == (0, "c1", "look")
    assert "".join(call.function.arguments or "" for call in more if call.function) == '{"x": 1}'
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    usage = chunks[-1].usage
    assert usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (10, 5)


@both_flavours
async def test_so_does_a_whole_answer(mock: ScriptedServer, client: openai.OpenAI, model: str) -> None:
    mock.script(Answer(Text("Hello"), usage=Usage(input=10, output=5)))

    completion = await trio.to_thread.run_sync(whole, client, model)

    assert completion.choices[0].message.content == "Hello"
    assert completion.usage
    assert completion.usage.total_tokens == 15


def tool_loop(client: openai.OpenAI, model: str) -> list[ChatCompletion]:
    """Show a picture, and do what the model asks for until it asks for nothing more."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, picture]}]
    answers: list[ChatCompletion] = []
    while not answers or answers[-1].choices[0].finish_reason == "tool_calls":
        answers.append(client.chat.completions.create(model=model, messages=messages, tools=[LOOK]))
        said = answers[-1].choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "a stone"} for call in said.tool_calls or ()]
        messages += [said.model_dump(exclude_none=True), *results]
    return answers


@both_flavours
async def test_a_loop_of_tools_about_a_picture_comes_to_its_end(
    mock: ScriptedServer, client: openai.OpenAI, model: str
) -> None:
    calls = [
        Answer(Text("I look."), ToolUse(f"c{number}", "look"), Arguments('{"x": 1}'), stop_reason="tool_use")
        for number in range(2)
    ]
    mock.script(*calls, Answer(Text("A stone.")))

    *asked, last = await trio.to_thread.run_sync(tool_loop, client, model)

    assert [call.id for each in asked for call in each.choices[0].message.tool_calls or ()] == ["c0", "c1"]
    assert last.choices[0].message.content == "A stone."
    first, *_, whole = (json.dumps(request.body) for request in mock.requests)
    assert first.count(PNG) == whole.count(PNG) == 1
    assert (first.count("a stone"), whole.count("a stone")) == (0, 2)
    assert len({request.headers["x-opencode-session"] for request in mock.requests}) == 1


@both_flavours
async def test_a_stall_is_told_as_an_error(mock: ScriptedServer, client: openai.OpenAI, model: str) -> None:
    mock.script(script("0 P", model))

    with pytest.raises(openai.APIError, match="OPENCODE_GO_IDLE_TIMEOUT raises this limit"):
        await trio.to_thread.run_sync(chunks_of, client, model)

    await mock.requests[0].closed.wait()


@both_flavours
async def test_a_refusal_keeps_its_kind(mock: ScriptedServer, client: openai.OpenAI, model: str) -> None:
    mock.script(refusal(429, "RateLimitError", "slow down", retry_after="7"))

    with pytest.raises(openai.RateLimitError) as caught:
        await trio.to_thread.run_sync(chunks_of, client, model)

    assert caught.value.response.headers["retry-after"] == "7"
