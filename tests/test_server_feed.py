"""Over real sockets, too, those who watch hold nothing up and leave nothing behind."""

import signal
from contextlib import AsyncExitStack
from pathlib import Path

from fake_program import install
from raw_client import open_client
from server_process import open_server
from watching import holdings, until

EVENTS = "/dashboard/events"


async def test_a_watcher_does_not_hold_up_the_end_of_the_server(tmp_path: Path) -> None:
    async with (
        open_server(install(tmp_path), OCP_SHUTDOWN_GRACE="3600000") as server,
        open_client(server.port) as client,
    ):
        await client.ask("GET", EVENTS)
        await client.head()
        await client.read_until('"status":"ok"')
        server.signal(signal.SIGTERM)

        assert b'"status":"draining"' in await client.rest()
        assert await server.wait() == 0


async def test_fifty_watchers_that_come_and_go_leave_nothing_open(tmp_path: Path) -> None:
    async with open_server(install(tmp_path)) as server:
        await server.wait_logged("claude_found")

        async def holds_no_more_than_before() -> bool:
            return all(now <= then for now, then in zip(holdings(server.pid), before, strict=True))

        before = holdings(server.pid)
        async with AsyncExitStack() as stack:
            for _ in range(50):
                client = await stack.enter_async_context(open_client(server.port))
                await client.ask("GET", EVENTS)
                await client.head()
                await client.read_until('"running":[]')
            assert holdings(server.pid)[0] > 50

        await until(holds_no_more_than_before)
        assert (await server.stats())["totalRequests"] == 0
