"""Nothing that was acknowledged is lost by a crash, whenever it comes."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from store_engines import Engine

from ocp_trio.store import Charge, Store, open_store

pytest_plugins = ["store_fixtures"]

SERVER = """
import os, sys, trio
from datetime import datetime, UTC
from ocp_trio.store import UsageRow, open_store

async def request(store, key_id, number):
    charge = await store.quotas.charge(key_id)
    row = UsageRow(request_id=str(number), created_at=datetime.now(UTC), key_id=key_id, key_name="anna",
                   model="m", backend="b", outcome="ok")
    await store.usage.record(row)
    # One write, so that a line is either told whole or not at all.
    os.write(1, b"%d\\n" % number)

async def client(store, key_id, numbers):
    for number in numbers:
        await request(store, key_id, number)

async def main():
    async with open_store(sys.argv[1]) as store, trio.open_nursery() as nursery:
        for first in range(20):
            nursery.start_soon(client, store, sys.argv[2], range(first, 10**9, 20))
trio.run(main)
"""


def crash(where: str, key_id: str, after: int) -> set[str]:
    """Let 20 clients ask at once, kill their server after some answers, and return all that were given."""
    server = subprocess.Popen([sys.executable, "-c", SERVER, where, key_id], stdout=subprocess.PIPE)
    assert server.stdout is not None
    answered = {server.stdout.readline().decode().strip() for _ in range(after)}
    server.kill()
    answered |= {line.decode().strip() for line in server.stdout if line.endswith(b"\n")}
    server.wait()
    server.stdout.close()
    return answered


async def used(store: Store, key_id: str) -> int:
    told = await store.quotas.allowances(key_id)
    assert told is not None
    return told["monthly"].used


@pytest.mark.parametrize("seed", range(3))
async def test_every_answered_request_has_its_row_and_its_charge(engine: Engine, seed: int) -> None:
    async with open_store(engine.where) as store:
        key = (await store.keys.create("anna")).key

    answered = crash(engine.where, key.id, after=random.Random(seed).randrange(1, 400))

    async with open_store(engine.where) as store:
        rows = {each.request_id for each in (await store.usage.report(limit=10_000)).recent}
        assert answered <= rows
        assert await used(store, key.id) >= len(rows)
        assert isinstance(await store.quotas.charge(key.id), Charge)


async def test_a_store_that_crashed_again_and_again_is_whole(tmp_path: Path) -> None:
    where = str(tmp_path / "store.db")
    async with open_store(where) as store:
        key = (await store.keys.create("anna")).key
    answered = 0
    for round_ in range(5):
        answered += len(crash(where, key.id, after=1 + 7 * round_))

    async with open_store(where) as store:
        requests = (await store.usage.report()).by_key[0].totals.requests
        lanes = store.keys._lanes  # type: ignore[attr-defined]
        checked = await lanes.read(lambda connection: connection.execute("PRAGMA integrity_check").fetchall())

    assert requests >= answered
    assert checked == [("ok",)]
