"""The examples run, and leave nothing behind when their client leaves."""

import os
import runpy
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from shell import LIMIT, read_all
from watching import children, until

from ocp_trio.streaming import open_child_process

EXAMPLES = Path(__file__).with_name("examples")
ANSWER = ["thinking", "(still alive)", "42", "done"]
"""What is said, repetitions left out: the child is silent for ten heartbeats."""


def once(lines: list[str]) -> list[str]:
    return [line for line, _ in groupby(lines)]


@asynccontextmanager
async def serving(name: str) -> AsyncIterator[str]:
    """Serve the application of an example for the length of a block; yield its address."""
    app: Any = runpy.run_path(str(EXAMPLES / name))["app"]
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = None
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        [address] = await nursery.start(
            lambda task_status: serve(app, config, shutdown_trigger=stop.wait, task_status=task_status)
        )
        yield address
        stop.set()


async def test_the_bare_program_prints_what_its_child_says() -> None:
    with trio.fail_after(LIMIT):
        command = [sys.executable, str(EXAMPLES / "program.py")]
        async with open_child_process(command, env=os.environ) as program:
            output = await read_all(program)
            await program.exited.wait()

    assert once(output.decode().splitlines()) == ANSWER
    assert program.returncode == 0


APPLICATIONS = pytest.mark.parametrize(("name", "path"), [("asgi_app.py", "/"), ("quart_route.py", "/stream")])


@APPLICATIONS
async def test_the_application_streams_what_its_child_says(name: str, path: str) -> None:
    with trio.fail_after(LIMIT):
        async with serving(name) as address, httpx.AsyncClient(base_url=address) as client:
            response = await client.get(path)

    frames = [block.removeprefix("data: ") for block in response.text.split("\n\n") if block]
    assert once(frames) == [": keepalive" if line == "(still alive)" else line for line in ANSWER]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"


@APPLICATIONS
async def test_its_child_ends_when_the_client_leaves(name: str, path: str) -> None:
    async def no_child() -> bool:
        return not children(os.getpid())

    with trio.fail_after(LIMIT):
        async with serving(name) as address:
            async with await trio.open_tcp_stream("127.0.0.1", httpx.URL(address).port or 80) as client:
                await client.send_all(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())
                seen = b""
                while b"data: thinking\n\n" not in seen:
                    seen += await client.receive_some()
                assert len(children(os.getpid())) == 1
            await until(no_child)
