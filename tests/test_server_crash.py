"""Whatever a client has seen end has its row and its charge, though the server is killed at any moment."""

import random
import signal
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
from fake_program import install
from fake_script import prompt, success, text
from raw_client import open_client
from server_process import Server, open_server
from store_engines import Engine

from ocp_trio.store import open_store

pytest_plugins = ["store_fixtures"]

CLIENTS = 10
ADMIN = "admin-key"


async def _ask_on(server: Server, key: str, ended: set[str], enough: trio.Event, after: int) -> None:
    """Ask for one stream after the other until the server is gone; note each that ended."""
    while not enough.is_set():
        try:
            async with server.chat(
                prompt(text("a", "b"), success()), headers={"authorization": f"Bearer {key}"}, stream=True
            ) as client:
                await client.head()
                if (await client.rest()).endswith(b"data: [DONE]\n\n"):
                    ended.add(client.headers["x-request-id"])
        except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError, AssertionError):
            # Killed in the midst of it.
            assert enough.is_set()
        if len(ended) >= after and not enough.is_set():
            enough.set()
            server.signal(signal.SIGKILL)


@pytest.mark.parametrize("seed", range(2))
async def test_every_stream_that_ended_before_a_kill_has_its_row_and_its_charge(
    engine: Engine, tmp_path: Path, seed: int
) -> None:
    ended: set[str] = set()
    settings: dict[str, Any] = {"CLAUDE_AUTH_MODE": "multi", "OCP_ADMIN_KEY": ADMIN, "OCP_STORE": engine.where}
    async with open_server(install(tmp_path), **settings) as server:
        async with open_client(server.port) as client:
            await client.ask("POST", "/api/keys", {"name": "anna"}, authorization=f"Bearer {ADMIN}")
            key = str((await client.answer())["key"])
        enough = trio.Event()
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(_ask_on, server, key, ended, enough, random.Random(seed).randrange(1, 40))

    async with open_store(engine.where) as store:
        rows = {row.request_id for row in (await store.usage.report(limit=10_000)).recent}
        told = await store.quotas.allowances((await store.keys.list())[0].id)
    assert ended
    assert ended <= rows
    assert told is not None
    assert told["daily"].used >= len(rows)
