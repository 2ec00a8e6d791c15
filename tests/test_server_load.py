"""Under load and at its limits, too, every request ends once, and nothing is left of it."""

from pathlib import Path

import trio
from fake_program import install
from fake_script import grandchild, hang, ignore_sigterm, prompt, success, text, wait_for
from server_process import open_server
from watching import Runs, holdings, until, wait_children, wait_gone
from web_app import frames


async def test_the_total_timeout_ends_everything_a_request_has_started(tmp_path: Path) -> None:
    program = install(tmp_path)
    runs = Runs(tmp_path)
    held = grandchild(holds_stdout=True, ignores_sigterm=True)
    async with (
        open_server(program, CLAUDE_TIMEOUT="3000", CLAUDE_MAX_CONCURRENT="2") as server,
        server.chat(prompt(ignore_sigterm(), text("secret"), hang()), stream=True) as stream,
        server.chat(prompt(held, text("secret"), hang())) as plain,
    ):
        await runs.begun(2)
        async with server.chat("hi") as waiting:
            for client in (plain, waiting):
                await client.answer()
                assert client.error == (504, "timeout_error", "timeout")
        await stream.head()
        seen = frames(await stream.rest())
        await server.wait_idle()

        assert seen == ["role", "secret", "error timeout_error timeout", "[DONE]"]
        assert b"secret" not in plain.body
        assert len(runs.all()) == 2
        await wait_gone(*(pid for child in runs.all() for pid in (child.pid, *child.grandchildren)))


async def test_of_fifty_streams_half_leave_and_nothing_is_left_of_any(tmp_path: Path) -> None:
    release, leaving = tmp_path / "release", trio.Event()
    script = prompt(text("a"), wait_for(release), text("b"), success())
    ends: list[list[str]] = []
    async with open_server(install(tmp_path), CLAUDE_MAX_CONCURRENT="8", CLAUDE_MAX_QUEUE="50") as server:

        async def stay() -> None:
            async with server.chat(script, stream=True) as client:
                await client.head()
                ends.append(frames(await client.rest()))

        async def leave() -> None:
            async with server.chat(script, stream=True):
                await leaving.wait()

        async def holds_no_more_than_before() -> bool:
            return all(now <= then for now, then in zip(holdings(server.pid), before, strict=True))

        await server.wait_logged("claude_found")
        before = holdings(server.pid)
        async with trio.open_nursery() as nursery:
            for _ in range(25):
                nursery.start_soon(stay)
                nursery.start_soon(leave)
            await server.wait_logged("request_start", 50)
            leaving.set()
            await server.wait_logged("request_end", 25)
            release.touch()
        await server.wait_idle()
        stats = await server.stats()

        assert ends == [["role", "a", "b", "finish stop", "[DONE]"]] * 25
        assert [stats[name] for name in ("totalRequests", "succeeded", "cancelled")] == [50, 25, 25]
        assert [stats[name] for name in ("activeRequests", "queued", "errors", "timeouts")] == [0, 0, 0, 0]
        await wait_children(server.pid, 0)
        await until(holds_no_more_than_before)
