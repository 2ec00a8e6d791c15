"""Heartbeats pass through the default settings of nginx because of one header, and not without it."""

from pathlib import Path

import pytest
from fake_program import install, records
from fake_script import hang, prompt, success, text, wait_for
from nginx import open_nginx, require_nginx
from raw_client import CHAT, get, open_client
from server_process import Server, open_server
from watching import wait_gone
from web_app import frames

BEAT = b": keepalive\n\n"


@pytest.fixture
def nginx() -> str:
    return require_nginx()


def question(*steps: list[object]) -> dict[str, object]:
    return {"model": "sonnet", "stream": True, "messages": [{"role": "user", "content": prompt(*steps)}]}


async def first_beat_passed_on(server: Server, port: int) -> None:
    """Wait until nginx has done with the first heartbeat whatever it does with it."""
    await server.wait_logged("heartbeat_active")
    # It has one worker: what came to that before this request has been dealt with.
    await get(port, "/health")


async def test_a_heartbeat_arrives_at_once(nginx: str, tmp_path: Path) -> None:
    release = tmp_path / "release"
    body = question(text("a"), wait_for(release), text("b"), success())
    async with open_server(install(tmp_path), CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        with open_nginx(nginx, server.port, tmp_path) as port:
            async with open_client(port) as client:
                await client.ask("POST", CHAT, body)
                await first_beat_passed_on(server, port)
                assert BEAT in client.peek()
                release.touch()

                await client.head()
                assert frames(await client.rest())[-3:] == ["b", "finish stop", "[DONE]"]
    # The header is for nginx alone.
    assert "x-accel-buffering" not in client.headers


async def test_without_the_header_it_is_held_back_until_the_end(nginx: str, tmp_path: Path) -> None:
    release = tmp_path / "release"
    body = question(text("a"), wait_for(release), text("b"), success())
    async with open_server(install(tmp_path), CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        with open_nginx(nginx, server.port, tmp_path, more="proxy_ignore_headers X-Accel-Buffering;") as port:
            async with open_client(port) as client:
                await client.ask("POST", CHAT, body)
                await first_beat_passed_on(server, port)
                with pytest.raises(BlockingIOError):
                    client.peek()
                release.touch()

                await client.head()
                assert BEAT in await client.rest()


async def test_a_client_that_leaves_nginx_ends_the_child(nginx: str, tmp_path: Path) -> None:
    async with open_server(install(tmp_path)) as server:
        with open_nginx(nginx, server.port, tmp_path) as port:
            async with open_client(port) as client:
                await client.ask("POST", CHAT, question(text("a"), hang()))
                await client.head()
                await client.read_until('"a"')

            await wait_gone(records(tmp_path)[0].pid)
            await server.wait_idle()
