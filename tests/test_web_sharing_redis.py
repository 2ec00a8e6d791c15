"""Two servers on one Redis answer equal requests once, and neither takes the other's clients along."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from store_engines import RedisServer
from store_upstream import PATIENCE, until
from web_app import WebApp, frames, open_web_app

from ocp_trio.completion import Batch, Completed, CompletionRequest, Started, TextDelta
from ocp_trio.errors import OcpError, UpstreamOverloadedError
from ocp_trio.store import Store, open_store
from ocp_trio.testing import AsgiExchange, ScriptedBackend

pytest_plugins = ["store_fixtures"]

WHOLE = ["role", "one", "two", "finish stop", "[DONE]"]


class GatedBackend(ScriptedBackend):
    """Says what a test hands it, when it does."""

    def __init__(self) -> None:
        super().__init__([])
        self._send, self._receive = trio.open_memory_channel[Batch | OcpError](100)

    def say(self, item: Batch | OcpError) -> None:
        self._send.send_nowait(item)

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        self.requests.append(request)
        self.running += 1
        try:
            yield self
        finally:
            self.running -= 1

    def __aiter__(self) -> AsyncIterator[Batch]:
        return self

    async def __anext__(self) -> Batch:
        item = await self._receive.receive()
        if isinstance(item, OcpError):
            raise item
        return item


class Pair:
    """Two servers with one backend each can reach."""

    def __init__(self, backend: GatedBackend, apps: list[WebApp], stores: list[Store]) -> None:
        self.backend = backend
        self.one, self.other = apps
        self.stores = stores


@asynccontextmanager
async def open_pair(redis: RedisServer) -> AsyncIterator[Pair]:
    backend = GatedBackend()
    with trio.fail_after(PATIENCE):
        async with (
            open_store(redis.where) as first,
            open_store(redis.where) as second,
            open_web_app(backend, store=first, cache_ttl=60.0) as one,
            open_web_app(backend, store=second, cache_ttl=60.0) as other,
        ):
            yield Pair(backend, [one, other], [first, second])


async def hear(exchange: AsgiExchange, *expected: str) -> None:
    """Read until these frames have come."""
    heard: list[str] = []
    while len(heard) < len(expected):
        heard += frames(await exchange.receive_some())
    assert heard == list(expected)


async def test_one_run_serves_the_clients_of_both(redis: RedisServer) -> None:
    async with open_pair(redis) as pair, pair.one.chat(stream=True) as here, pair.other.chat(stream=True) as there:
        pair.backend.say((Started(),))
        pair.backend.say((TextDelta("one"),))
        for client in (here, there):
            await client.head()
            await hear(client, "role", "one")
        pair.backend.say((TextDelta("two"), Completed("stop")))

        assert [frames(await client.body()) for client in (here, there)] == [WHOLE[2:]] * 2
        assert len(pair.backend.requests) == 1


@asynccontextmanager
async def open_followed(pair: Pair) -> AsyncIterator[AsgiExchange]:
    """Have a client of the first server begin a run, one of the other follow it, and the first one leave."""
    async with pair.one.chat(stream=True) as here:
        pair.backend.say((Started(),))
        await here.head()
        async with pair.other.chat(stream=True) as there:
            await there.head()
            await hear(there, "role")
            here.disconnect()
            yield there


async def test_the_client_that_began_may_leave_and_the_other_server_is_served_to_the_end(redis: RedisServer) -> None:
    async with open_pair(redis) as pair, open_followed(pair) as there:
        await until(lambda: not pair.one.lifecycle.running)
        pair.backend.say((TextDelta("one"),))
        pair.backend.say((TextDelta("two"), Completed("stop")))

        assert frames(await there.body()) == WHOLE[1:]
        assert len(pair.backend.requests) == 1


async def test_the_last_to_leave_anywhere_ends_the_run(redis: RedisServer) -> None:
    async with open_pair(redis) as pair:
        async with pair.one.chat(stream=True) as here, pair.other.chat(stream=True) as there:
            pair.backend.say((Started(),))
            for client in (here, there):
                await client.head()
            here.disconnect()
            there.disconnect()
        await until(lambda: pair.backend.running == 0)
        await until(lambda: [store.flights.in_flight for store in pair.stores] == [0, 0])

        assert len(pair.backend.requests) == 1


async def test_both_tell_the_same_error(redis: RedisServer) -> None:
    async with open_pair(redis) as pair, pair.one.chat(stream=True) as here, pair.other.chat(stream=True) as there:
        pair.backend.say(UpstreamOverloadedError("busy", retry_after=9))

        for client in (here, there):
            assert await client.head() == 503
            assert client.headers["retry-after"] == "9"
            assert b"busy" in await client.body()
        assert len(pair.backend.requests) == 1


async def test_what_one_has_answered_the_other_has_in_its_cache(redis: RedisServer) -> None:
    async with open_pair(redis) as pair:
        pair.backend.say((Started(),))
        pair.backend.say((TextDelta("onetwo"), Completed("stop")))
        first = await pair.one.ask()
        second = await pair.other.ask()

        assert first[0] == second[0] == 200
        assert len(pair.backend.requests) == 1


async def test_a_server_that_is_drained_serves_the_other_ones_clients_to_the_end(redis: RedisServer) -> None:
    drained = trio.Event()

    async def drain(app: WebApp) -> None:
        await app.lifecycle.drain(PATIENCE, 0)
        drained.set()

    async with open_pair(redis) as pair, open_followed(pair) as there, trio.open_nursery() as nursery:
        nursery.start_soon(drain, pair.one)
        await until(lambda: not pair.one.lifecycle.running)
        pair.backend.say((TextDelta("one"),))
        await hear(there, "one")
        still_serving = not drained.is_set()
        pair.backend.say((TextDelta("two"), Completed("stop")))

        assert frames(await there.body()) == WHOLE[2:]
        await drained.wait()

    assert still_serving


async def test_a_server_that_is_gone_is_an_error_for_the_other_ones_clients(redis: RedisServer) -> None:
    backend = GatedBackend()
    ending = trio.Event()

    async def serve_and_end(task_status: trio.TaskStatus[None]) -> None:
        async with (
            open_store(redis.where) as store,
            open_web_app(backend, store=store, cache_ttl=60.0) as app,
            app.chat(stream=True) as exchange,
        ):
            backend.say((Started(),))
            await exchange.head()
            task_status.started()
            await ending.wait()
            exchange.disconnect()

    with trio.fail_after(PATIENCE):
        async with (
            open_store(redis.where) as store,
            open_web_app(backend, store=store, cache_ttl=60.0) as other,
            trio.open_nursery() as nursery,
        ):
            await nursery.start(serve_and_end)
            async with other.chat(stream=True) as there:
                await there.head()
                await hear(there, "role")
                ending.set()
                seen = frames(await there.body())

    assert seen == ["error server_error upstream_incomplete", "[DONE]"]
    assert backend.running == 0


@pytest.mark.parametrize("engine_is_down_at", ["first", "mid-stream"])
async def test_a_redis_that_stops_costs_the_sharing_and_not_the_answer(
    redis: RedisServer, engine_is_down_at: str
) -> None:
    async with open_pair(redis) as pair:
        if engine_is_down_at == "first":
            with redis.outage():
                pair.backend.say((Started(),))
                pair.backend.say((TextDelta("one"), TextDelta("two"), Completed("stop")))
                assert (await pair.one.ask(stream=True))[0] == 200
        else:
            async with pair.one.chat(stream=True) as here:
                pair.backend.say((Started(),))
                await here.head()
                await hear(here, "role")
                with redis.outage():
                    pair.backend.say((TextDelta("one"),))
                    await hear(here, "one")
                    pair.backend.say((TextDelta("two"), Completed("stop")))
                    assert frames(await here.body()) == WHOLE[2:]
