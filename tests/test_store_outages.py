"""A store that is down says so in time, and serves again as soon as it is back."""

import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
import trio
from store_engines import Engine, RedisServer, SqliteFile, row

from ocp_trio.errors import StoreUnavailableError
from ocp_trio.store import ApiKey, Charge, Quota, Store, open_store

pytest_plugins = ["store_fixtures"]

TIMEOUT = 1.0
"""Seconds; a call of the store under test."""
BOUND = 15 * TIMEOUT
"""Seconds after which a call counts as hanging, on a busy machine."""


def calls(store: Store, key: ApiKey, charge: Charge) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return every call that needs the engine."""
    return {
        "ping": store.ping,
        "create": lambda: store.keys.create("bert"),
        "list": store.keys.list,
        "find": lambda: store.keys.find("anna"),
        "authenticate": lambda: store.keys.authenticate("ocp_x"),
        "revoke": lambda: store.keys.revoke("anna"),
        "set_quota": lambda: store.keys.set_quota("anna", Quota(1)),
        "charge": lambda: store.quotas.charge(key.id),
        "refund": lambda: store.quotas.refund(charge),
        "allowances": lambda: store.quotas.allowances(key.id),
        "record": lambda: store.usage.record(row("1")),
        "report": store.usage.report,
    }


def cache_calls(store: Store) -> dict[str, Callable[[], Awaitable[object]]]:
    return {
        "get": lambda: store.cache.get(b"k"),
        "put": lambda: store.cache.put(b"k", b"v", 60),
        "stats": store.cache.stats,
        "clear": store.cache.clear,
    }


async def fail_in_time(named: Mapping[str, Callable[[], Awaitable[object]]]) -> list[str]:
    """Return the names of the calls that fail as they should; none may hang."""
    failed = set()

    async def call(name: str, function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except StoreUnavailableError:
            failed.add(name)

    with trio.fail_after(BOUND):
        async with trio.open_nursery() as nursery:
            for name, function in named.items():
                nursery.start_soon(call, name, function)
    return [name for name in named if name in failed]


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("ocp_trio")]


async def prepare(store: Store) -> tuple[ApiKey, Charge]:
    key = (await store.keys.create("anna")).key
    charge = await store.quotas.charge(key.id)
    assert isinstance(charge, Charge)
    return key, charge


async def test_every_call_fails_in_time_while_the_engine_does_not_answer(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        key, charge = await prepare(store)
    with engine.outage():
        async with open_store(engine.where, timeout=TIMEOUT) as store:
            named = calls(store, key, charge) | (cache_calls(store) if engine.shared else {})

            assert await fail_in_time(named) == list(named)


async def test_all_serves_again_when_the_engine_is_back(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        key, charge = await prepare(store)
    async with open_store(engine.where, timeout=TIMEOUT) as store:
        with engine.outage():
            await fail_in_time(calls(store, key, charge))

        with trio.fail_after(BOUND):
            assert await store.keys.find("anna") == key
            assert isinstance(await store.quotas.charge(key.id), Charge)
            await store.usage.record(row("1"))
            await store.ping()


async def test_many_calls_at_once_fail_together_and_leave_nothing_behind(engine: Engine) -> None:
    async with open_store(engine.where, timeout=TIMEOUT) as store:
        named = {str(number): store.keys.list for number in range(100)}
        with engine.outage():
            failed = [await fail_in_time(named) for _ in range(2)]

        assert failed == [list(named)] * 2
        assert await store.keys.list() == []


async def test_an_outage_is_logged_once_and_so_is_its_end(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")
    async with open_store(engine.where, timeout=TIMEOUT) as store:
        with engine.outage():
            await fail_in_time({str(number): store.keys.list for number in range(3)})
        for _ in range(2):
            await store.keys.list()

    assert messages(caplog) == ["store_down", "store_up"]


async def test_a_request_that_is_cancelled_during_an_outage_ends_in_time(engine: Engine) -> None:
    async with open_store(engine.where, timeout=TIMEOUT) as store:
        with engine.outage(), trio.fail_after(BOUND), trio.CancelScope() as scope:
            scope.cancel()
            with pytest.raises(StoreUnavailableError):
                await store.usage.record(row("1"))


async def test_a_redis_that_is_restarted_has_kept_everything(mortal_redis: RedisServer) -> None:
    async with open_store(mortal_redis.where, timeout=TIMEOUT) as store:
        key, charge = await prepare(store)
        for _ in range(3):
            mortal_redis.kill()
            named = calls(store, key, charge) | cache_calls(store)
            assert await fail_in_time(named) == list(named)

            mortal_redis.start()
            assert await store.keys.find("anna") == key
            assert isinstance(await store.quotas.charge(key.id), Charge)

        told = await store.quotas.allowances(key.id)

    assert told is not None
    assert told["daily"].used == 4


async def test_a_redis_that_refuses_writes_is_down_for_them(redis: RedisServer) -> None:
    async with open_store(redis.where, timeout=TIMEOUT) as store:
        new = await store.keys.create("anna")
        redis.ask("CONFIG", "SET", "maxmemory", "1")
        try:
            with pytest.raises(StoreUnavailableError):
                await store.ping()
            with pytest.raises(StoreUnavailableError):
                await store.usage.record(row("1"))
        finally:
            redis.ask("CONFIG", "SET", "maxmemory", "0")
        await store.ping()

        assert await store.keys.authenticate(new.secret) == new.key


async def test_a_wrong_password_is_a_store_that_is_down(redis: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    redis.ask("ACL", "SETUSER", "anna", "on", ">another", "~*", "+@all")
    where = redis.where.replace("redis://", "redis://anna:hunter2@")
    async with open_store(where, timeout=TIMEOUT) as store:
        with pytest.raises(StoreUnavailableError) as refused:
            await store.ping()

    assert "hunter2" not in f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"


@pytest.fixture
def file(tmp_path: Path) -> SqliteFile:
    return SqliteFile(tmp_path)


async def test_a_file_that_another_process_writes_for_too_long_is_down_for_writes_only(file: SqliteFile) -> None:
    async with open_store(file.where, timeout=TIMEOUT) as store:
        key, charge = await prepare(store)
        blocker = sqlite3.connect(file.path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        failed = await fail_in_time(calls(store, key, charge))
        blocker.execute("ROLLBACK")
        blocker.close()

        assert failed == ["ping", "create", "revoke", "set_quota", "charge", "refund", "record"]
        assert await store.keys.list() == [key]
        await store.ping()


async def test_a_write_that_was_given_up_is_not_made_later(file: SqliteFile) -> None:
    async with open_store(file.where, timeout=TIMEOUT) as store:
        key = (await store.keys.create("anna")).key
        blocker = sqlite3.connect(file.path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        charges = {"charge": lambda: store.quotas.charge(key.id)}
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(fail_in_time, charges)
        blocker.close()
        await store.ping()
        told = await store.quotas.allowances(key.id)

    assert told is not None
    assert told["daily"].used == 0


async def test_a_file_that_is_no_store_is_down_until_it_is_replaced(file: SqliteFile) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(b"this is no database" * 1000)
    async with open_store(file.where, timeout=TIMEOUT) as store:
        failed = await fail_in_time({"list": store.keys.list, "ping": store.ping})
        file.path.unlink()

        assert failed == ["list", "ping"]
        assert await store.keys.list() == []


async def test_tables_of_a_newer_version_are_not_touched(file: SqliteFile) -> None:
    async with open_store(file.where) as store:
        await store.keys.create("anna")
    with sqlite3.connect(file.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    async with open_store(file.where) as store:
        with pytest.raises(StoreUnavailableError):
            await store.keys.list()


async def test_a_query_that_takes_too_long_is_interrupted(file: SqliteFile) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    async with open_store(file.where, timeout=TIMEOUT) as store:
        lanes = store.keys._lanes  # type: ignore[attr-defined]
        with trio.fail_after(BOUND), pytest.raises(StoreUnavailableError):
            await lanes.read(lambda connection: connection.execute(endless).fetchone())

        with trio.fail_after(BOUND):
            assert await store.keys.list() == []
