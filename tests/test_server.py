"""The server starts in each of its ways, and ends in order."""

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from fake_program import install, records
from fake_script import hang, ignore_sigterm, prompt, success, text, wait_for
from raw_client import CHAT, RawClient, open_client
from server_process import HYPERCORN, INSTALLED, MODULE, Server, open_server
from shell import LIMIT, open_python, read_all
from watching import until, wait_children, wait_gone
from web_app import frames

from ocp_trio.streaming.process import SETPRIV

HELLO = [{"role": "user", "content": "hi"}]
WAYS = pytest.mark.parametrize(
    "command", [INSTALLED, MODULE, HYPERCORN], ids=["ocp-trio serve", "python -m ocp_trio serve", "hypercorn"]
)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


@asynccontextmanager
async def hanging_streams(server: Server) -> AsyncIterator[tuple[RawClient, RawClient]]:
    """Open two streams that have begun and never end by themselves; the second one's child ignores SIGTERM."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(server.chat(prompt(*steps, text("a"), hang()), stream=True))
            for steps in ([], [ignore_sigterm()])
        ]
        for client in clients:
            await client.head()
            await client.read_until('"a"')
        yield clients[0], clients[1]


async def _wait(server: Server, **counts: int) -> bool:
    """Return whether so many children wait, and for what."""
    pool = (await server.get("/health"))["backends"][0]["pool"]
    return {name: pool[name] for name in counts} == counts


@WAYS
async def test_it_serves_beats_and_ends(command: Sequence[str], program: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    script = prompt(text("a"), wait_for(release), text("b"), success())
    async with open_server(program, command=command, CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        async with server.chat(script, stream=True, headers={"connection": "close"}) as client:
            assert await client.head() == 200
            await client.read_until(": keepalive\n\n: keepalive\n\n")
            release.touch()
            seen = frames(await client.rest())
            assert await client.stream.receive_some() == b""
        await server.wait_idle()
        health = await server.get("/health")
        async with open_client(server.port) as idle:
            await idle.ask("GET", "/health")
            await idle.answer()
            server.signal(signal.SIGTERM)
            assert await server.wait() == 0

        assert [frame for frame in seen if frame != ": keepalive"] == ["role", "a", "b", "finish stop", "[DONE]"]
        assert (health["status"], health["stats"]["succeeded"]) == ("ok", 1)
        assert "Traceback" not in server.output()
        assert list(server.home.iterdir()) == list(server.temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "number"),
    [(MODULE, signal.SIGTERM), (MODULE, signal.SIGINT), (HYPERCORN, signal.SIGTERM)],
    ids=["SIGTERM", "SIGINT", "hypercorn"],
)
async def test_a_signal_ends_streams_with_an_error_and_the_server_with_status_0(
    command: Sequence[str], number: signal.Signals, program: Path, tmp_path: Path
) -> None:
    async with (
        open_server(program, command=command) as server,
        hanging_streams(server) as streams,
        server.chat(prompt(hang())) as plain,
    ):
        await server.wait_logged("request_start", 3)
        server.signal(number)
        ends = [frames(await client.rest())[-2:] for client in streams]
        await plain.answer()
        status = await server.wait()

        assert ends == [["error server_error shutting_down", "[DONE]"]] * 2
        assert plain.error == (503, "server_error", "shutting_down")
        assert status == 0
        assert "Traceback" not in server.output()
        assert list(server.temporary.iterdir()) == []
    await wait_gone(*(record.pid for record in records(tmp_path)))  # row 44


async def test_a_stream_may_finish_within_the_grace_period_while_new_requests_are_refused(
    program: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    script = prompt(text("a"), wait_for(release), text("b"), success())
    async with (
        open_server(program, OCP_SHUTDOWN_GRACE="600000") as server,
        server.chat(script, stream=True) as client,
        open_client(server.port) as late,
    ):
        await client.head()
        await client.read_until('"a"')
        server.signal(signal.SIGTERM)
        await server.wait_logged("draining")
        await late.ask("POST", CHAT, {"model": "sonnet", "messages": HELLO})
        await late.answer()
        release.touch()

        assert frames(await client.rest())[-3:] == ["b", "finish stop", "[DONE]"]
        assert late.error == (503, "server_error", "shutting_down")
        assert int(late.headers["retry-after"]) >= 1
        assert await server.wait() == 0


async def test_a_second_signal_cuts_the_grace_period_short(program: Path) -> None:
    async with open_server(program, OCP_SHUTDOWN_GRACE="600000") as server, hanging_streams(server) as streams:
        server.signal(signal.SIGTERM)
        await server.wait_logged("draining")
        server.signal(signal.SIGTERM)

        for client in streams:
            assert frames(await client.rest())[-2:] == ["error server_error shutting_down", "[DONE]"]
        assert await server.wait() == 0


@pytest.mark.skipif(SETPRIV is None, reason="without setpriv nothing ends the children of a killed server")
async def test_the_children_of_a_killed_server_die_with_it(program: Path, tmp_path: Path) -> None:
    async with open_server(program) as server, hanging_streams(server):
        server.signal(signal.SIGKILL)

        assert await server.wait() == -signal.SIGKILL
        with trio.fail_after(10):
            await wait_gone(*(record.pid for record in records(tmp_path)))


@pytest.mark.skipif(SETPRIV is None, reason="without setpriv nothing ends the children of a killed server")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_children_that_wait_for_a_request_or_for_the_next_turn_end_with_the_server(
    number: signal.Signals, program: Path, tmp_path: Path
) -> None:
    async with open_server(program, CLAUDE_WARM_POOL="2", CLAUDE_WARM_CONVERSATIONS="2") as server:
        await until(partial(_wait, server, idle=2))
        async with server.chat(prompt(text("a"), success())) as client:
            await client.answer()
        await until(partial(_wait, server, idle=2, conversations=1))
        waiting = await wait_children(server.pid, 3)
        server.signal(number)

        assert await server.wait() == (0 if number == signal.SIGTERM else -number)
        with trio.fail_after(10):
            await wait_gone(*waiting)


async def test_one_started_with_nohup_outlives_its_terminal(program: Path) -> None:
    async with open_server(program, command=("nohup", *MODULE)) as server:
        server.signal(signal.SIGHUP)

        assert (await server.get("/health"))["status"] == "ok"
        server.signal(signal.SIGTERM)
        assert await server.wait() == 0


COLLECTOR = """
import gc, trio
from ocp_trio.server import Application
from ocp_trio.settings import Settings

async def main():
    requests = iter(["startup", "shutdown"])
    async def receive():
        return {"type": "lifespan." + next(requests)}
    async def send(answer):
        print(answer["type"], gc.get_freeze_count() > 10_000, gc.get_threshold())
    await Application(Settings(), {"HOME": "/"}, demo=True)({"type": "lifespan"}, receive, send)

trio.run(main)
"""


async def test_once_started_it_collects_garbage_seldom_and_leaves_out_what_was_imported() -> None:
    with trio.fail_after(LIMIT):
        async with open_python(COLLECTOR) as server:
            started = (await read_all(server)).decode().splitlines()[0]

    assert started == "lifespan.startup.complete True (20000, 5, 5)"
