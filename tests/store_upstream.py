"""Upstreams and followers of shared runs, in this process and in others."""

import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256

import trio
from store_engines import RedisServer

from ocp_trio.store import Producer, Publish, Store
from ocp_trio.store.redis_flights import LEASE

__all__ = [
    "KEY",
    "PATIENCE",
    "Upstream",
    "end_leader",
    "follow",
    "lease",
    "start_leader",
    "stream",
    "until",
    "wait_for_lease",
]

PATIENCE = 5 * LEASE
"""Seconds within which the death of an instance has been noticed, with room for a busy machine."""

KEY = b"\0model and prompt\xff"


class Upstream:
    """Counts its runs, and publishes what a test sends it."""

    def __init__(self) -> None:
        self.runs = 0
        self.cancelled = trio.Event()
        self.send, self._receive = trio.open_memory_channel[bytes](1000)

    async def produce(self, publish: Publish) -> None:
        self.runs += 1
        try:
            async for batch in self._receive:
                await publish(batch)
        except trio.Cancelled:
            self.cancelled.set()
            raise


async def follow(store: Store, produce: Producer, into: list[bytes], key: bytes = KEY) -> None:
    async with store.flights.follow(key, produce) as batches:
        async for batch in batches:
            into.append(batch)  # noqa: PERF401 (others look at it meanwhile)


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until a condition holds; every step is a real wait for what they wait for."""
    while not condition():  # noqa: ASYNC110 (a test looks from outside)
        await trio.sleep(0.001)


LEADER = f"""
import sys, trio
from ocp_trio.store import open_store
async def produce(publish):
    for batch in sys.argv[2:]:
        await publish(batch.encode())
    await trio.sleep_forever()
async def main():
    async with open_store(sys.argv[1]) as store, store.flights.follow({KEY!r}, produce) as batches:
        print("leading", flush=True)
        async for batch in batches:
            print(batch.decode(), flush=True)
trio.run(main)
"""


def start_leader(where: str, *batches: str) -> "subprocess.Popen[bytes]":
    """Start an instance that leads a flight without end, and return once it has published its batches."""
    leader = subprocess.Popen([sys.executable, "-c", LEADER, where, *batches], stdout=subprocess.PIPE)
    assert leader.stdout is not None
    for word in ("leading", *batches):
        assert leader.stdout.readline().strip() == word.encode()
    return leader


def end_leader(process: "subprocess.Popen[bytes]") -> None:
    """End an instance, if a test has not done so."""
    process.kill()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()


def lease() -> str:
    """Return where the instances meet."""
    return f"ocp:flight:{sha256(KEY).hexdigest()}"


def stream(redis: RedisServer) -> str:
    """Return where a leader's batches go, or a name of nothing."""
    names = [name.decode() for name in redis.ask("KEYS", f"{lease()}:*").split() if name.startswith(b"ocp")]
    return next((name for name in names if not name.endswith(":followers")), "nothing")


async def wait_for_lease(redis: RedisServer) -> None:
    await until(lambda: redis.ask("EXISTS", lease()) == b":1\r\n")
