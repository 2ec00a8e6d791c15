"""The mock of OpenCode Go speaks what the official clients of both flavours understand."""

from collections.abc import AsyncIterator, Iterator

import anthropic
import openai
import pytest
import trio
from anthropic.types import Message
from mock_opencode import KEY, open_mock_opencode, refusal
from openai.types.chat import ChatCompletionChunk
from scripted_server import ScriptedServer
from sse_script import Answer, Arguments, Fail, Ping, Sleep, Text, Thinking, ToolUse, Usage

LIMIT = 20
"""Seconds that a test may take; on an idle machine it is one."""
SESSION = {"x-opencode-session": "ses_test"}
EVERYTHING = Answer(
    Thinking("hm"),
    Ping(),
    Text("Hé"),
    Sleep(0.01),
    Text("llo"),
    ToolUse("c1", "look"),
    Arguments('{"x":'),
    Arguments(" 1}"),
    stop_reason="tool_use",
    usage=Usage(input=10, output=5, cache_read=2),
)


@pytest.fixture
async def mock() -> AsyncIterator[ScriptedServer]:
    with trio.fail_after(LIMIT):
        async with open_mock_opencode() as mock:
            yield mock


@pytest.fixture
def chat(mock: ScriptedServer) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(
        base_url=f"{mock.url}/v1", api_key=KEY, max_retries=0, timeout=LIMIT, http_client=http, default_headers=SESSION
    ) as client:
        yield client


@pytest.fixture
def messages(mock: ScriptedServer) -> Iterator[anthropic.Anthropic]:
    http = anthropic.DefaultHttpxClient(trust_env=False)
    with anthropic.Anthropic(
        base_url=mock.url, api_key=KEY, max_retries=0, timeout=LIMIT, http_client=http, default_headers=SESSION
    ) as client:
        yield client


def chunks_of(client: openai.OpenAI) -> list[ChatCompletionChunk]:
    return list(
        client.chat.completions.create(
            model="kimi-k2.6",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )


def whole(client: openai.OpenAI) -> str | None:
    completion = client.chat.completions.create(model="kimi-k2.6", messages=[{"role": "user", "content": "hi"}])
    return completion.choices[0].message.content


def message_of(client: anthropic.Anthropic) -> Message:
    with client.messages.stream(
        model="minimax-m3", max_tokens=100, messages=[{"role": "user", "content": "hi"}]
    ) as stream:
        return stream.get_final_message()


async def test_openais_client_reads_a_stream_of_it(mock: ScriptedServer, chat: openai.OpenAI) -> None:
    mock.script(EVERYTHING)

    chunks = await trio.to_thread.run_sync(chunks_of, chat)

    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    first, *more = [call for delta in deltas for call in delta.tool_calls or ()]
    assert "".join(delta.content or "" for delta in deltas) == "Héllo"
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "hm"
    assert first.function
    assert (first.index, first.id, first.function.name) == (0, "c1", "look")
    assert "".join(call.function.arguments or "" for call in more if call.function) == '{"x": 1}'
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    usage = chunks[-1].usage
    assert usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (12, 5)


async def test_openais_client_reads_a_whole_answer_of_it(mock: ScriptedServer, chat: openai.OpenAI) -> None:
    mock.script(Answer(Text("Hello")))

    assert await trio.to_thread.run_sync(whole, chat) == "Hello"


async def test_anthropics_client_reads_a_stream_of_it(mock: ScriptedServer, messages: anthropic.Anthropic) -> None:
    mock.script(EVERYTHING)

    message = await trio.to_thread.run_sync(message_of, messages)

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert [block.text for block in message.content if block.type == "text"] == ["Héllo"]
    assert [block.input for block in message.content if block.type == "tool_use"] == [{"x": 1}]
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (10, 5)


async def test_both_clients_see_an_error_in_mid_stream(
    mock: ScriptedServer, chat: openai.OpenAI, messages: anthropic.Anthropic
) -> None:
    mock.script(Answer(Text("par"), Fail()))

    with pytest.raises(openai.APIError, match="Overloaded"):
        await trio.to_thread.run_sync(chunks_of, chat)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await trio.to_thread.run_sync(message_of, messages)


async def test_without_the_key_or_a_session_it_refuses(mock: ScriptedServer, chat: openai.OpenAI) -> None:
    stranger = chat.with_options(api_key="another")
    nameless = chat.with_options(set_default_headers={})

    with pytest.raises(openai.AuthenticationError):
        await trio.to_thread.run_sync(whole, stranger)
    with pytest.raises(openai.BadRequestError, match="session"):
        await trio.to_thread.run_sync(whole, nameless)


async def test_it_refuses_as_its_script_says(mock: ScriptedServer, chat: openai.OpenAI) -> None:
    mock.script(refusal(429, "RateLimitError", "slow down", retry_after="7"))

    with pytest.raises(openai.RateLimitError, match="slow down") as caught:
        await trio.to_thread.run_sync(whole, chat)

    assert caught.value.response.headers["retry-after"] == "7"
