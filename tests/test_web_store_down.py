"""While the store is down each request is answered or refused, as a setting says, and none hangs."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import trio
from store_engines import RedisServer, SqliteFile
from web_app import WebApp, frames, open_web_app

from ocp_trio.completion import Completed, TextDelta
from ocp_trio.store import Store, open_store
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

pytest_plugins = ["store_fixtures"]

TIMEOUT = 1.0
"""Seconds; a call of the store under test."""
BOUND = 20 * TIMEOUT
"""Seconds after which a request counts as hanging, on a busy machine."""
ANSWER: list[Step] = [(TextDelta("Hello"),), (Completed("stop"),)]
Outage: TypeAlias = Callable[[], AbstractContextManager[None]]


class Served:
    """A server in auth mode multi, its store, and a key that it has seen."""

    def __init__(self, app: WebApp, store: Store, key: str) -> None:
        self.app = app
        self.store = store
        self.key = {"authorization": f"Bearer {key}"}

    async def used(self) -> int:
        told = await self.store.quotas.allowances((await self.store.keys.list())[0].id)
        assert told is not None
        return told["daily"].used

    async def rows(self) -> int:
        return len((await self.store.usage.report()).recent)


@asynccontextmanager
async def open_served(where: str, backend: ScriptedBackend, **settings: Any) -> AsyncIterator[Served]:
    settings = {"auth_mode": "multi", "admin_key": "admin", "cache_ttl": 60.0, **settings}
    with trio.fail_after(2 * BOUND):
        async with open_store(where, timeout=TIMEOUT) as store, open_web_app(backend, store=store, **settings) as app:
            served = Served(app, store, (await store.keys.create("anna")).secret)
            assert (await app.ask(served.key))[0] == 200
            yield served


@contextmanager
def locked(file: SqliteFile) -> Iterator[None]:
    """Have another process write for ever: what is there can still be read."""
    other = sqlite3.connect(file.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def paused(redis: RedisServer) -> Iterator[None]:
    """Have Redis keep everybody waiting, until it is started anew."""
    redis.ask("CLIENT", "PAUSE", "600000", "ALL")
    try:
        yield
    finally:
        redis.kill()
        redis.start()


@contextmanager
def stopped(redis: RedisServer) -> Iterator[None]:
    redis.kill()
    try:
        yield
    finally:
        redis.start()


@pytest.fixture(params=["sqlite: locked", "redis: SIGSTOP", "redis: CLIENT PAUSE", "redis: ended"])
def breakable(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Outage]:
    """A store, and a way to break it."""
    if request.param.startswith("sqlite"):
        file = SqliteFile(tmp_path)
        return file.where, lambda: locked(file)
    redis: RedisServer = request.getfixturevalue("mortal_redis")
    ways = {"SIGSTOP": redis.outage, "CLIENT PAUSE": lambda: paused(redis), "ended": lambda: stopped(redis)}
    return redis.where, ways[request.param.removeprefix("redis: ")]


async def test_by_default_all_are_refused_until_it_is_back(breakable: tuple[str, Outage]) -> None:
    where, outage = breakable
    backend = ScriptedBackend(ANSWER)
    async with open_served(where, backend) as served:
        with outage():
            with trio.fail_after(BOUND):
                async with served.app.chat(served.key, stream=True, max_tokens=5) as exchange:
                    status = await exchange.head()
                    error = json.loads(await exchange.body())["error"]
            _, health = await served.app.get("/health")

        assert (status, error["code"], exchange.headers["retry-after"]) == (503, "store_unavailable", "5")
        assert health["store"]["ok"] is False
        assert len(backend.requests) == 1
        assert (await served.app.ask(served.key, max_tokens=5))[0] == 200
        assert (await served.app.get("/health"))[1]["store"]["ok"] is True
        assert await served.used() == 2


async def test_where_that_is_allowed_those_who_are_known_are_served_uncounted(breakable: tuple[str, Outage]) -> None:
    where, outage = breakable
    async with open_served(where, ScriptedBackend(ANSWER), store_down="allow") as served:
        stranger = {"authorization": f"Bearer {(await served.store.keys.create('bert')).secret}"}
        with outage(), trio.fail_after(BOUND):
            known = await served.app.ask(served.key, stream=True, max_tokens=5)
            unknown = await served.app.ask(stranger)
            _, health = await served.app.get("/health")

        assert (known[0], frames(known[1])) == (200, ["role", "Hello", "finish stop", "[DONE]"])
        # Whose key can be looked up is known.
        assert unknown[0] == (200 if where.startswith("/") else 503)
        served_uncounted = len(served.app.logged("uncounted"))
        assert served_uncounted == (2 if where.startswith("/") else 1)
        assert (health["store"]["ok"], health["store"]["lostRows"]) == (False, served_uncounted)
        assert len(served.app.logged("usage_lost")) == served_uncounted
        assert (await served.app.ask(served.key, max_tokens=6))[0] == 200
        assert await served.used() == 2
        # What a store was told just before it stopped it may carry out when it goes on.
        assert await served.rows() >= 2


async def test_an_answer_that_has_begun_is_told_to_its_end(breakable: tuple[str, Outage]) -> None:
    where, outage = breakable
    release = trio.Event()

    class Waiting(ScriptedBackend):
        async def _batches(self) -> Any:
            async for batch in super()._batches():
                yield batch
                if isinstance(batch[0], TextDelta) and len(self.requests) > 1:
                    await release.wait()

    async with open_served(where, Waiting(ANSWER)) as served:
        async with served.app.chat(served.key, stream=True, max_tokens=5) as exchange:
            await exchange.head()
            begun = frames(await exchange.receive_some()) + frames(await exchange.receive_some())
            with outage(), trio.fail_after(BOUND):
                release.set()
                ended = frames(await exchange.body())

        assert begun + ended == ["role", "Hello", "finish stop", "[DONE]"]
        assert len(served.app.logged("usage_lost")) == 1


async def test_a_key_that_was_revoked_is_not_known_any_more(redis: RedisServer) -> None:
    async with open_served(redis.where, ScriptedBackend(ANSWER), store_down="allow") as served:
        assert (await served.app.get("/api/keys/anna", "DELETE", authorization="Bearer admin"))[0] == 200
        with redis.outage(), trio.fail_after(BOUND):
            status, _ = await served.app.ask(served.key)

        assert status == 503


async def test_where_no_key_is_asked_for_it_costs_only_the_cache(breakable: tuple[str, Outage]) -> None:
    where, outage = breakable
    async with (
        open_served(where, ScriptedBackend(ANSWER)) as served,
        open_web_app(ScriptedBackend(ANSWER), store=served.store, cache_ttl=60.0) as open_to_all,
    ):
        with outage(), trio.fail_after(BOUND):
            assert (await open_to_all.ask())[0] == 200
