"""The official client library and curl work with the server as they are, heartbeats on."""

import asyncio
import shlex
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import openai
import pytest
import trio
from fake_program import install
from fake_script import api_error, exits, failed_result, prompt, sleep, success, text
from openai.types.chat import ChatCompletionChunk
from server_process import LIMIT, MODULE, Server, open_server, shared_server
from web_app import frames

KEY = "made-up"
SILENCE = 0.3
"""Seconds in which the client sees two heartbeats at least."""
ANSWER = prompt(text("Hel"), sleep(SILENCE), text("lo"), success(usage=(3, 7, 2, 1)))
USAGE = (6, 7, 13, 2)
"""Prompt, completion, total and cached tokens of that answer."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = install(tmp_path_factory.mktemp("claude"))
    settings = {"CLAUDE_AUTH_MODE": "shared", "PROXY_API_KEY": KEY, "CLAUDE_HEARTBEAT_INTERVAL": "100"}
    with shared_server(program, **settings) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=LIMIT, http_client=http
    ) as client:
        yield client


def _async_client(server: Server) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=LIMIT, http_client=http)


def _said(chunks: list[ChatCompletionChunk]) -> list[str | None]:
    return [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]


def _ask(client: openai.OpenAI, content: str, model: str = "sonnet") -> str | None:
    completion = client.chat.completions.create(model=model, messages=[{"role": "user", "content": content}])
    return completion.choices[0].message.content


def test_a_plain_answer_comes_with_its_usage(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model="claude-sonnet-4-6", messages=[{"role": "user", "content": ANSWER}], temperature=0.2
    )

    assert completion.choices[0].message.content == "Hello"
    assert (completion.model, completion.choices[0].finish_reason) == ("claude-sonnet-4-6", "stop")
    usage = completion.usage
    assert usage
    assert usage.prompt_tokens_details
    told = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, usage.prompt_tokens_details.cached_tokens)
    assert told == USAGE


def test_a_stream_comes_piece_by_piece_and_ends_with_its_usage(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="sonnet",
        messages=[{"role": "user", "content": ANSWER}],
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = stream

    assert _said(chunks) == ["", "Hel", "lo", None]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, None, "stop"]
    assert {chunk.id for chunk in chunks} == {last.id}
    assert last.usage
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == USAGE[:2]


def test_the_accumulating_helper_works(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="sonnet", messages=[{"role": "user", "content": ANSWER}]) as stream:
        completion = stream.get_final_completion()

    assert completion.choices[0].message.content == "Hello"


def test_the_asynchronous_client_works_on_asyncio(server: Server) -> None:
    assert asyncio.run(_ask_both_ways(server)) == ["Hello", "Hello"]


async def _ask_both_ways(server: Server) -> list[str | None]:
    async with _async_client(server) as client:
        stream = await client.chat.completions.create(
            model="sonnet", messages=[{"role": "user", "content": ANSWER}], stream=True
        )
        streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        whole = await client.chat.completions.create(model="sonnet", messages=[{"role": "user", "content": ANSWER}])
    return [streamed, whole.choices[0].message.content]


def test_leaving_a_stream_leaves_nothing_behind(client: openai.OpenAI, server: Server) -> None:
    script = prompt(text("a"), sleep(LIMIT), success())
    with client.chat.completions.create(
        model="sonnet", messages=[{"role": "user", "content": script}], stream=True
    ) as stream:
        assert next(iter(stream)).choices[0].delta.role == "assistant"

    trio.run(server.wait_idle)
    assert server.logged("request_end")[-1]["outcome"] == "cancelled"


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    models = list(client.models.list())

    assert "claude-sonnet-5-5" in [model.id for model in models]
    assert client.models.retrieve("sonnet").id == "claude-sonnet-5-5"
    assert {model.object for model in models} == {"model"}


# Errors


def test_a_wrong_key_is_an_authentication_error(client: openai.OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError) as raised:
        client.with_options(api_key="wrong").models.list()

    assert raised.value.code == "invalid_api_key"


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        _ask(client, "hi", model="gpt-4o")

    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


def test_a_request_that_cannot_be_served_is_a_bad_request(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="sonnet", messages=[{"role": "user", "content": "hi"}], n=2)

    assert (raised.value.code, raised.value.param) == ("unsupported_value", "n")
    assert raised.value.request_id
    assert raised.value.request_id.startswith("req_")


def test_a_rate_limit_of_upstream_is_a_rate_limit_error(client: openai.OpenAI) -> None:
    with pytest.raises(openai.RateLimitError) as raised:
        _ask(client, prompt(api_error("API Error: slow down", error="rate_limit", status=429)))

    assert raised.value.type == "rate_limit_error"
    assert int(raised.value.response.headers["retry-after"]) >= 1


def test_an_upstream_that_ends_early_is_an_error_with_its_status_and_code(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        _ask(client, prompt(text("a"), exits(0)))

    assert (raised.value.status_code, raised.value.code) == (502, "upstream_incomplete")


def test_an_error_in_mid_stream_is_raised_after_what_came_before_it(client: openai.OpenAI) -> None:
    script = prompt(text("a"), sleep(SILENCE), failed_result("API Error: 500 no", status=500))
    seen: list[ChatCompletionChunk] = []
    stream = client.chat.completions.create(model="sonnet", messages=[{"role": "user", "content": script}], stream=True)

    with pytest.raises(openai.APIError) as raised:
        seen.extend(stream)

    assert _said(seen) == ["", "a"]
    assert raised.value.code == "upstream_error"


# curl


CURL = """\
curl -N http://127.0.0.1:3456/v1/chat/completions \
-d '{"model":"demo","stream":true,"messages":[{"role":"user","content":"hi"}]}'"""
"""As README has it."""


@asynccontextmanager
async def running_curl(server: Server, command: str = CURL) -> AsyncIterator[trio.Process]:
    """Run a curl command against the server for the length of a block."""
    words = shlex.split(command.replace(":3456", f":{server.port}"))
    process = await trio.lowlevel.open_process(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        with trio.CancelScope(shield=True):  # it has been killed: this does not wait long
            await process.wait()
            assert process.stdout
            await process.stdout.aclose()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_curl_shows_the_words_and_then_the_heartbeats_of_the_demo(tmp_path: Path) -> None:
    command = (*MODULE, "--demo")
    async with open_server(install(tmp_path), command=command, CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        async with running_curl(server) as curl:
            assert curl.stdout
            seen = b""
            while not seen.endswith(b": keepalive\n\n: keepalive\n\n"):
                seen += await curl.stdout.receive_some()
        async with running_curl(server, CURL.replace("demo", "sonnet")) as curl:
            assert curl.stdout
            whole = b"".join([bytes(data) async for data in curl.stdout])
            assert await curl.wait() == 0

    assert "".join(frames(seen)[1:6]) == "This is the demo model"
    assert [frame for frame in frames(whole) if frame != ": keepalive"] == ["role", "ok", "finish stop", "[DONE]"]
