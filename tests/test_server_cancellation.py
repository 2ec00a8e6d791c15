"""Over real sockets, too, nothing that a request started outlives it, and its slot is free."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import trio
from fake_program import install
from fake_script import Step, burst, exits, grandchild, hang, ignore_sigterm, linger, prompt, success, text
from raw_client import CHAT, RawClient, open_client, request_bytes
from server_process import LIMIT, Server, shared_server
from watching import Runs, children, until, wait_children, wait_gone

HELLO = [{"role": "user", "content": "hi"}]
STREAMING = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
Leave: TypeAlias = Callable[[RawClient], None]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("claude"))


@pytest.fixture(scope="module")
def shared(program: Path) -> Iterator[Server]:
    """Two slots, a queue of one; children get 0.3 s to end, clients 1 s to read."""
    settings = {"CLAUDE_MAX_CONCURRENT": "2", "CLAUDE_MAX_QUEUE": "1", "OCP_WRITE_TIMEOUT": "1000"}
    with shared_server(program, **settings) as server:
        yield server


@pytest.fixture
async def server(shared: Server) -> AsyncIterator[Server]:
    """Check afterwards that the server is as it was."""
    with trio.fail_after(LIMIT):
        # Until then the child that tells the version runs.
        await shared.wait_logged("claude_found")
        yield shared
        await shared.wait_idle()
        health = await shared.get("/health")
        await wait_children(shared.pid, 0)
    assert health["stats"]["activeRequests"] == 0
    assert (health["concurrency"]["inflight"], health["concurrency"]["queued"]) == (0, 0)


@pytest.fixture
def runs(program: Path) -> Runs:
    return Runs(program.parent)


async def queued(server: Server, count: int) -> None:
    """Wait until ``count`` requests wait for a slot."""

    async def as_many() -> bool:
        return (await server.stats())["queued"] == count

    await until(as_many)


# Disconnects


@STREAMING
async def test_a_disconnect_before_the_first_byte_ends_the_child(server: Server, runs: Runs, stream: bool) -> None:
    async with server.chat(prompt(hang()), stream=stream):
        [child] = await runs.begun()

    await wait_gone(child.pid)
    assert runs.all()[0].signals == ["SIGTERM"]


def _closes(client: RawClient) -> None:
    client.stream.socket.close()


def _resets(client: RawClient) -> None:
    client.reset()


def _half_closes(client: RawClient) -> None:
    # What `nc -N` does after its input, and what no HTTP client does: it looks like a close until something is sent.
    client.stream.socket.shutdown(trio.socket.SHUT_WR)


@pytest.mark.parametrize("leave", [_closes, _resets, _half_closes])
async def test_a_disconnect_in_mid_stream_ends_the_child(server: Server, runs: Runs, leave: Leave) -> None:
    async with server.chat(prompt(text("a"), hang()), stream=True) as client:
        await client.head()
        await client.read_until('"a"')
        [child] = await runs.begun()
        leave(client)

        await wait_gone(child.pid)
        await server.wait_idle()
    assert server.logged("request_end")[-1]["outcome"] == "cancelled"


@STREAMING
async def test_a_request_that_is_cancelled_by_its_id_leaves_no_child(server: Server, runs: Runs, stream: bool) -> None:
    async with server.chat(prompt(text("a"), hang()), stream=stream) as client, open_client(server.port) as other:
        [child] = await runs.begun()
        [*_, started] = server.logged("request_start")
        await other.ask("DELETE", f"/v1/requests/{started['id']}")
        assert await other.answer() == {"id": started["id"], "cancelled": True, "gone": True}

        assert child.pid not in children(server.pid)
        assert await client.head() == (200 if stream else 499)
        assert b'"code":"cancelled"' in await client.rest()


async def test_a_queued_request_that_is_cancelled_by_its_id_never_starts_a_child(server: Server, runs: Runs) -> None:
    async with server.chat(prompt(hang())), server.chat(prompt(hang())), server.chat("hi") as waiting:
        await runs.begun(2)
        await queued(server, 1)
        [*_, started] = server.logged("request_start")
        async with open_client(server.port) as other:
            await other.ask("DELETE", f"/v1/requests/{started['id']}")
            assert await other.head() == 200

        assert await waiting.head() == 499
    assert len(runs.all()) == 2


async def test_a_short_answer_reaches_a_client_that_has_closed_its_half(server: Server) -> None:
    async with open_client(server.port) as client:
        await client.ask("GET", "/health")
        _half_closes(client)

        assert (await client.answer())["status"] == "ok"


@pytest.mark.parametrize("behind", [b"\r\n", request_bytes("GET", "/health")], ids=["a stray line", "a request"])
async def test_bytes_behind_the_request_hide_no_disconnect(server: Server, runs: Runs, behind: bytes) -> None:
    async with server.chat(prompt(hang())) as client:
        await client.stream.send_all(behind)
        [child] = await runs.begun()

    await wait_gone(child.pid)


async def test_a_disconnect_in_the_middle_of_an_upload_starts_nothing(server: Server, runs: Runs) -> None:
    whole = request_bytes("POST", CHAT, {"model": "sonnet", "messages": HELLO})
    async with open_client(server.port) as client:
        await client.stream.send_all(whole[:-5])
    async with server.chat("hi") as other:
        await other.answer()

    assert len(runs.all()) == 1


async def test_a_queued_request_that_leaves_never_starts_a_child(server: Server, runs: Runs) -> None:
    async with (
        server.chat(prompt(hang()), stream=True),
        server.chat(prompt(hang()), stream=True),
    ):
        await runs.begun(2)
        async with server.chat("hi", stream=True):
            await queued(server, 1)
        await queued(server, 0)
    await server.wait_idle()

    assert len(runs.all()) == 2


async def test_a_disconnect_after_the_last_frame_is_none(server: Server, runs: Runs) -> None:
    async with server.chat(prompt(linger(), text("a"), success()), stream=True) as client:
        await client.head()
        await client.read_until("[DONE]")
    await server.wait_idle()

    assert server.logged("request_end")[-1]["outcome"] == "ok"
    assert runs.all()[0].signals == ["SIGTERM"]


async def test_ten_disconnects_leave_no_slot_taken(server: Server) -> None:
    for _ in range(10):
        async with server.chat(prompt(text("a"), hang()), stream=True) as client:
            await client.head()
            await client.read_until('"a"')
    async with server.chat("hi") as last:
        answer = await last.answer()

    assert answer["choices"][0]["message"]["content"] == "ok"


async def test_a_client_that_stops_reading_is_dropped_and_its_child_ended(server: Server, runs: Runs) -> None:
    script = prompt(burst(2_000_000), success())
    async with server.chat(script, stream=True, receive_buffer=2**12) as client:
        await client.head()
        [child] = await runs.begun()

        await wait_gone(child.pid)
        await server.wait_idle()
        assert (await server.stats())["activeRequests"] == 0


# Children that resist


async def test_a_child_that_ignores_sigterm_is_killed_and_the_next_request_served(server: Server, runs: Runs) -> None:
    stubborn = prompt(ignore_sigterm(), text("a"), hang())
    async with server.chat(stubborn, stream=True) as first, server.chat(stubborn, stream=True) as second:
        for client in (first, second):
            await client.head()
            await client.read_until('"a"')
        pids = [child.pid for child in await runs.begun(2)]
    async with server.chat("hi") as third:
        answer = await third.answer()

    await wait_gone(*pids)
    assert [child.signals for child in runs.all()[:2]] == [["SIGTERM"]] * 2
    assert answer["choices"][0]["message"]["content"] == "ok"


@STREAMING
@pytest.mark.parametrize(
    "step",
    [
        grandchild(),
        grandchild(own_session=True),
        grandchild(own_session=True, ignores_sigterm=True),
        grandchild(holds_stdout=True, ignores_sigterm=True),
    ],
    ids=["in the group", "in a session of its own", "that ignores SIGTERM", "that holds stdout"],
)
async def test_a_disconnect_ends_grandchildren_too(server: Server, runs: Runs, stream: bool, step: Step) -> None:
    async with server.chat(prompt(step, text("a"), hang()), stream=stream):
        [child] = await runs.begun(having="grandchildren")

    await wait_gone(child.pid, *child.grandchildren)


# Limits


async def test_a_full_queue_is_a_429_that_says_when_to_come_back(server: Server, runs: Runs) -> None:
    async with (
        server.chat(prompt(hang()), stream=True),
        server.chat(prompt(hang()), stream=True),
        server.chat("hi", stream=True),
    ):
        await queued(server, 1)
        for stream in (True, False):
            async with server.chat("hi", stream=stream) as client:
                await client.answer()
            assert client.error == (429, "rate_limit_error", "rate_limit_exceeded")
            assert int(client.headers["retry-after"]) >= 1


async def test_an_exit_without_a_result_is_told_although_a_grandchild_holds_stdout(server: Server, runs: Runs) -> None:
    async with server.chat(prompt(grandchild(holds_stdout=True), text("a"), exits(0))) as client:
        await client.answer()

    assert client.error == (502, "server_error", "upstream_incomplete")
    await wait_gone(*runs.all()[0].grandchildren)
