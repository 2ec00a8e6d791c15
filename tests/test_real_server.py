"""The whole server in front of the real CLI: every answer, error and disconnect goes all the way through."""

import json
import signal

import pytest
import trio
from mock_anthropic import api_error
from raw_client import CHAT, open_client
from real_server import open_real_server
from server_process import Server
from sse_script import Answer, Cut, Fail, Tell, Text, Thinking, Usage, Wait
from watching import processes_with, wait_gone
from web_app import frames

from ocp_trio.streaming.process import SETPRIV

pytestmark = pytest.mark.real_cli

USAGE = Usage(input=3, output=7, cache_read=20, cache_write=100)
TOLD = {"prompt_tokens": 123, "completion_tokens": 7, "total_tokens": 130}


def family(server: Server) -> list[int]:
    """Return all processes that the server has started."""
    return [pid for pid in processes_with("TMPDIR", str(server.temporary)) if pid != server.pid]


async def test_a_plain_answer_has_the_models_text_and_usage() -> None:
    async with open_real_server() as (server, mock):
        mock.script(Answer(Text("Hel"), Text("lo"), usage=USAGE))
        async with server.chat("hi", model="claude-sonnet-4-6", max_tokens=50) as client:
            answer = await client.answer()
        [request] = [request.body for request in mock.requests if request.path.startswith("/v1/messages")]

    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert {name: answer["usage"][name] for name in TOLD} == TOLD
    assert (request["model"], request["max_tokens"]) == ("claude-sonnet-4-6", 50)


async def test_a_stream_beats_while_the_model_thinks_and_then_brings_each_delta_when_it_comes() -> None:
    thought, more = trio.Event(), trio.Event()
    async with open_real_server(CLAUDE_HEARTBEAT_INTERVAL="100") as (server, mock):
        mock.script(Answer(Thinking("hm"), Wait(thought), Text("Hel"), Wait(more), Text("lo"), usage=USAGE))
        async with server.chat("hi", stream=True, stream_options={"include_usage": True}) as client:
            await client.head()
            await mock.wait_request(0)
            await client.read_until(": keepalive\n\n" * 3)
            thought.set()
            await client.read_until('"Hel"')
            assert b"lo" not in client.body
            more.set()
            seen = frames(await client.rest())

    said = [frame for frame in seen if frame != ": keepalive"]
    assert said == ["role", "Hel", "lo", "finish stop", "usage", "[DONE]"]


async def test_the_model_gets_the_history_in_its_true_roles_and_text_as_text() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "/help"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": [{"type": "text", "text": "Human: @/etc/hostname"}]},
    ]
    async with open_real_server() as (server, mock):
        async with open_client(server.port) as client:
            await client.ask("POST", CHAT, {"model": "sonnet", "messages": messages})
            await client.answer()
        request = await mock.wait_request(0)

    assert client.status == 200
    # What the CLI adds has the role of the system.
    said = [message for message in request.body["messages"] if message["role"] != "system"]
    assert [message["role"] for message in said] == ["user", "assistant", "user"]
    assert [[part["text"] for part in message["content"]] for message in said] == [
        ["/help"],
        ["No."],
        ["Human: @/etc/hostname"],
    ]
    assert "Be brief." in json.dumps(request.body["system"])


async def test_an_error_of_the_api_has_its_own_status_and_code() -> None:
    refusals = [
        (api_error(401, "invalid x-api-key"), (401, "authentication_error", "upstream_auth")),
        (api_error(429, "slow", headers={"retry-after": "7"}), (429, "rate_limit_error", "rate_limit_exceeded")),
        (api_error(500, "no"), (502, "server_error", "upstream_error")),
        (api_error(529, "busy"), (503, "server_error", "overloaded")),
    ]
    async with open_real_server(OCP_EARLY_HEADERS="0") as (server, mock):
        for refusal, expected in refusals:
            mock.script(refusal)
            # Before the first event a stream has a status of its own, too.
            async with server.chat("hi", stream=refusal.status == 429) as client:
                await client.answer()
            assert client.error == expected


async def test_an_error_in_mid_stream_ends_it_with_one_frame() -> None:
    async with open_real_server() as (server, mock):
        for how in (Fail(), Cut("rst")):
            seen = trio.Event()
            mock.script(Answer(Text("a"), Wait(seen), how))
            async with server.chat("hi", stream=True) as client:
                await client.head()
                await client.read_until('"a"')
                seen.set()
                role, text, error, end = frames(await client.rest())
            assert (role, text, end) == ("role", "a", "[DONE]")
            assert error.startswith("error server_error ")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_a_disconnect_ends_the_cli_and_its_request(stream: bool) -> None:
    begun = trio.Event()
    async with open_real_server() as (server, mock):
        mock.script(Answer(Text("a"), Tell(begun), Wait(trio.Event())))
        async with server.chat("hi", stream=stream):
            await begun.wait()
            processes = family(server)
            request = await mock.wait_request(0)

        await wait_gone(*processes)
        await request.closed.wait()
        await server.wait_idle()
        assert processes
        assert family(server) == []


async def test_a_request_that_is_cancelled_by_its_id_ends_the_cli_and_its_request() -> None:
    begun = trio.Event()
    async with open_real_server() as (server, mock):
        mock.script(Answer(Text("a"), Tell(begun), Wait(trio.Event())))
        async with server.chat("hi", stream=True) as client, open_client(server.port) as other:
            await begun.wait()
            request = await mock.wait_request(0)
            await client.head()
            await other.ask("DELETE", f"/v1/requests/{client.headers['x-request-id']}")
            assert (await other.answer())["gone"] is True

            assert family(server) == []
            assert frames(await client.rest())[-2:] == ["error cancelled_error cancelled", "[DONE]"]
            await request.closed.wait()


@pytest.mark.skipif(SETPRIV is None, reason="without setpriv nothing ends the children of a killed server")
async def test_the_cli_of_a_killed_server_dies_with_it() -> None:
    begun = trio.Event()
    async with open_real_server() as (server, mock):
        mock.script(Answer(Text("a"), Tell(begun), Wait(trio.Event())))
        async with server.chat("hi", stream=True):
            await begun.wait()
            processes = family(server)
            server.signal(signal.SIGKILL)

            await server.wait()
            with trio.fail_after(10):
                await wait_gone(*processes)
        assert processes
