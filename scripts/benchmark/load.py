"""Be 200 clients of a household for a while, each doing what it likes; then see whether all accounts agree."""

import json
import random
import sqlite3
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import trio
from pieces import MODEL
from servers import Settings, Subject

__all__ = ["SETTINGS", "Opened", "run_load"]

ADMIN = "bench-admin"
CLIENTS = 200
KEYS = 20
SPARE_QUOTA = 40
"""Requests a day that every fifth key may make: it is soon spent."""
SETTLE = 3.0
"""Seconds after which what the last requests have left behind is gone."""
BEGINNING = 0.25
"""Part of the time after which the server has its size."""
GROWTH = 24 * 1024
"""KiB that the server may grow from then on."""
LIMIT = 60.0
"""Seconds that a request may take."""
SCRIPTS = ("send hello", "send head rest 300 repeat 1 block send tail", "send head repeat 3 block send tail")

SETTINGS = Settings(
    heartbeat=0.5,
    environment={
        "CLAUDE_AUTH_MODE": "multi",
        "OCP_ADMIN_KEY": ADMIN,
        "CLAUDE_CACHE_TTL": "2000",
        "CLAUDE_MAX_CONCURRENT": "16",
        "CLAUDE_MAX_QUEUE": "60",
    },
)

Opened = AbstractContextManager[Subject]


@dataclass
class _House:
    """All that the clients know.

    Attributes:
        keys: Their keys; every fifth has a small quota.
        seen: How their requests ended, as far as they saw it; ``left`` are those that they left.
    """

    subject: Subject
    keys: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    asked: int = 0

    def call(self, path: str, method: str = "GET", body: object = None) -> dict[str, object]:
        """Do something as the administrator."""
        host, port = self.subject.address
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {ADMIN}"}
        request = urllib.request.Request(f"http://{host}:{port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT) as response:
            answer: dict[str, object] = json.load(response)
            return answer

    def make_keys(self) -> None:
        for number in range(KEYS):
            self.keys.append(str(self.call("/api/keys", "POST", {"name": f"key {number}"})["key"]))
            if number % 5 == 0:
                self.call(f"/api/keys/key%20{number}/quota", "PATCH", {"daily": SPARE_QUOTA})

    async def be_client(self, number: int) -> None:
        """Ask again and again."""
        chance = random.Random(number)
        while True:
            await trio.sleep(chance.expovariate(1.5))
            await self._ask(chance, number)

    async def _ask(self, chance: random.Random, number: int) -> None:
        self.asked += 1
        script = chance.choice(
            ["send hello", "send head rest 300 repeat 1 block send tail", "send head repeat 3 block send tail"]
        )
        # Some ask what others with their key ask as well.
        tail = chance.randrange(3) if chance.random() < 0.3 else f"{number} {self.asked}"
        key = "ocp_wrong" if chance.random() < 0.03 else self.keys[number % KEYS]
        body = {
            "model": MODEL,
            "stream": chance.random() < 0.7,
            "messages": [{"role": "user", "content": f"bench: {script} end {tail}"}],
        }
        patience = chance.choice([0.0, 0.05, 0.3, 0.6]) if chance.random() < 0.2 else LIMIT
        with trio.move_on_after(patience) as leaving:
            self.seen[await self._exchange(key, json.dumps(body).encode())] += 1
        if leaving.cancelled_caught:
            self.seen["left" if patience < LIMIT else "hung"] += 1

    async def _exchange(self, key: str, body: bytes) -> str:
        """Make one request, and say how it ended."""
        head = (
            f"POST {self.subject.path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            f"authorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        async with await trio.open_tcp_stream(*self.subject.address) as stream:
            await stream.send_all(head.encode() + body)
            answer = b"".join([piece async for piece in stream])
        return _outcome(answer)


def _outcome(answer: bytes) -> str:
    status, body = answer[9:12], answer.partition(b"\r\n\r\n")[2]
    if status == b"200":
        whole = b"data: [DONE]" in body if b"event-stream" in answer[:400] else b'"finish_reason"' in body
        return "ok" if whole and b'"error"' not in body else "broken"
    for code in (b"insufficient_quota", b"rate_limit_exceeded", b"invalid_api_key", b"store_unavailable"):
        if code in body:
            return code.decode()
    return f"status {status.decode('latin-1')}"


def _holdings(pid: int) -> dict[str, int]:
    """Return what a process holds."""
    process = Path(f"/proc/{pid}")
    tasks = list((process / "task").iterdir())
    return {
        "descriptors": len(list((process / "fd").iterdir())),
        "children": sum(len((task / "children").read_text().split()) for task in tasks),
        "threads": len(tasks),
    }


def _rows(home: Path) -> tuple[Counter[str], int]:
    """Return the rows by outcome, and how much of all quotas is used."""
    connection = sqlite3.connect(home / ".ocp" / "ocp-trio.db")
    rows = Counter(dict(connection.execute("SELECT outcome, count(*) FROM usage GROUP BY outcome").fetchall()))
    used = connection.execute("SELECT sum(used) FROM quota_use WHERE period = 'monthly'").fetchone()[0]
    connection.close()
    return rows, used or 0


def _differences(seen: Counter[str], stats: Mapping[str, int], rows: Counter[str], used: int) -> list[str]:
    """Say which accounts do not agree."""
    refused, total = rows["rate_limit_exceeded"], rows.total()
    ended = sum(stats[name] for name in ("succeeded", "errors", "timeouts", "cancelled"))
    odd = {name: count for name, count in seen.items() if name not in _EXPECTED}
    checks = {
        f"each of {stats['totalRequests']} requests has one outcome, not {ended}": stats["totalRequests"] == ended,
        f"each has its row, of which there are {total}": total == ended,
        f"rows that say ok are {stats['succeeded']}, not {rows['ok']}": rows["ok"] == stats["succeeded"],
        f"rows that say cancelled are {stats['cancelled']}, not {rows['cancelled']}": rows["cancelled"]
        == stats["cancelled"],
        f"used of quotas is {total - refused}, not {used}": used == total - refused,
        f"whoever saw an end is counted: ok {seen['ok']}, left {seen['left']}, of {stats['succeeded']}": seen["ok"]
        <= stats["succeeded"]
        <= seen["ok"] + seen["left"],
        f"cancelled are none but those that left: {seen['left']}": stats["cancelled"] <= seen["left"],
        f"nothing runs: {stats['activeRequests']}": stats["activeRequests"] == 0,
        f"nothing odd was seen: {odd}": not odd,
    }
    return [text for text, holds in checks.items() if not holds]


_EXPECTED = {"ok", "left", "insufficient_quota", "rate_limit_exceeded", "invalid_api_key"}


async def _live(house: _House, seconds: float) -> float:
    """Be all clients for a time; return the memory that the server had when it had its size."""
    async with trio.open_nursery() as nursery:
        for number in range(CLIENTS):
            nursery.start_soon(house.be_client, number)
        await trio.sleep(seconds * BEGINNING)
        memory = house.subject.memory()
        await trio.sleep(seconds * (1 - BEGINNING))
        house.seen["left"] += house.asked - house.seen.total()
        nursery.cancel_scope.cancel()
    await trio.sleep(SETTLE)
    return memory


def run_load(opened: Opened, home: Path, seconds: float) -> list[str]:
    """Run it; print what came of it, and return what is wrong."""
    with opened as subject:
        assert subject.pid is not None
        house = _House(subject)
        house.make_keys()
        before = _holdings(subject.pid)
        memory = trio.run(_live, house, seconds)
        grown = subject.memory() - memory
        after = _holdings(subject.pid)
        health = house.call("/health")
        rows, used = _rows(home)
    stats = health["stats"]
    assert isinstance(stats, dict)
    problems = _differences(house.seen, stats, rows, used)
    # SQLite's files and two lanes of threads are opened by the first requests.
    allowed = {"descriptors": before["descriptors"] + 8, "children": 0, "threads": before["threads"] + 4}
    problems += [
        f"{after[name]} {name} at the end, {before[name]} before" for name in allowed if after[name] > allowed[name]
    ]
    problems += [f"grown by {grown:.0f} KiB"] if grown > GROWTH else []
    print(f"{CLIENTS} clients for {seconds:g} s: {house.asked} requests, seen as {dict(house.seen)}")
    print(f"rows {dict(rows)}, used {used}; counters {stats}")
    print(f"before {before}, after {after}, grown by {grown:.0f} KiB after the first quarter")
    print("all accounts agree, nothing is left" if not problems else "NOT so: " + "; ".join(problems))
    return problems
