"""The SQLite file is private, durable, and never touched on the event loop."""

import sqlite3
import stat
import threading
from pathlib import Path

import pytest
import trio
import trio.testing
from store_engines import Clock, row

from ocp_trio.errors import OcpError, StoreUnavailableError
from ocp_trio.store import open_store
from ocp_trio.store.outages import Outages
from ocp_trio.store.sqlite_lanes import SqliteLanes, open_lanes
from ocp_trio.store.sqlite_schema import connect

NORMAL, FULL = 1, 2
"""SQLite's numbers of them: a commit is synced by the second, and survives the death of its process by both."""


def mode(path: Path) -> str:
    return stat.filemode(path.stat().st_mode)


async def test_the_default_store_is_in_a_private_folder_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_store() as store:
        await store.keys.create("anna")
        await store.keys.list()
        modes = {path.name: mode(path) for path in (tmp_path / ".ocp").iterdir()}

    assert mode(tmp_path / ".ocp") == "drwx------"
    assert modes == dict.fromkeys(("ocp-trio.db", "ocp-trio.db-wal", "ocp-trio.db-shm"), "-rw-------")


async def test_what_was_open_to_others_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ocp").mkdir(mode=0o755)
    (tmp_path / ".ocp" / "ocp-trio.db").touch(mode=0o644)

    async with open_store("sqlite") as store:
        await store.ping()

    assert mode(tmp_path / ".ocp") == "drwx------"
    assert mode(tmp_path / ".ocp" / "ocp-trio.db") == "-rw-------"


def test_a_folder_that_is_not_ours_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    connect(tmp_path / "store.db", busy_timeout=1).close()

    assert (mode(tmp_path), mode(tmp_path / "store.db")) == ("drwxr-xr-x", "-rw-------")


async def test_no_answer_touches_the_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.db") as store:
        await store.cache.put(b"key", b"a private answer", 60)
        await store.usage.record(row("1"))

        files = list(tmp_path.iterdir())  # noqa: ASYNC240 (a test)
        assert files
        assert not any(b"a private answer" in path.read_bytes() for path in files)


class Commits:
    """Opens connections, and counts what is committed on them and in which threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.statements: list[str] = []
        self.threads: set[threading.Thread] = set()

    def __call__(self) -> sqlite3.Connection:
        connection = connect(self.path, busy_timeout=1)
        connection.set_trace_callback(self.note)
        return connection

    def note(self, statement: str) -> None:
        self.statements.append(statement)
        self.threads.add(threading.current_thread())


async def write_together(lanes: SqliteLanes, count: int) -> list[int]:
    written: list[int] = []

    async def write(number: int) -> None:
        written.append(await lanes.write(lambda connection: change(connection, number)))

    def change(connection: sqlite3.Connection, number: int) -> int:
        if number % 10 == 7:
            raise OcpError
        connection.execute("INSERT INTO quota_use VALUES ('k', 'daily', ?, 1)", (str(number),))
        return number

    async def refused(number: int) -> None:
        try:
            await write(number)
        except OcpError:
            written.append(-number)

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(refused, number)
    return written


async def test_writes_that_come_together_are_committed_together(tmp_path: Path) -> None:
    commits = Commits(tmp_path / "store.db")
    async with open_lanes(commits, timeout=5, outages=Outages("sqlite")) as lanes:
        await write_together(lanes, 200)

    assert 1 <= commits.statements.count("COMMIT") <= 20
    assert threading.main_thread() not in commits.threads


async def test_a_read_that_fails_fails_alone(tmp_path: Path) -> None:
    answers: dict[int, object] = {}

    async def ask(number: int) -> None:
        # Nothing has such a table.
        query = "SELECT * FROM nothing" if number == 50 else f"SELECT {number}"
        try:
            answers[number] = await lanes.read(lambda connection: connection.execute(query).fetchone())
        except StoreUnavailableError as error:
            answers[number] = type(error)

    async with (
        open_lanes(Commits(tmp_path / "store.db"), timeout=5, outages=Outages("sqlite")) as lanes,
        trio.open_nursery() as nursery,
    ):
        for number in range(200):
            nursery.start_soon(ask, number)

    assert answers == {number: (number,) for number in range(200)} | {50: StoreUnavailableError}


async def test_a_group_is_synced_unless_all_of_it_are_in_haste(tmp_path: Path) -> None:
    def ask(connection: sqlite3.Connection) -> tuple[str, int]:
        names = ("journal_mode", "synchronous")
        journal, level = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        return journal, level

    async with open_lanes(Commits(tmp_path / "store.db"), timeout=5, outages=Outages("sqlite")) as lanes:
        levels = [await lanes.write(ask), await lanes.write(ask, hasty=True), await lanes.write(ask)]

    assert levels == [("wal", FULL), ("wal", NORMAL), ("wal", FULL)]


async def test_a_write_that_is_refused_does_not_undo_those_beside_it(tmp_path: Path) -> None:
    commits = Commits(tmp_path / "store.db")
    async with open_lanes(commits, timeout=5, outages=Outages("sqlite")) as lanes:
        written = await write_together(lanes, 30)
        kept = await lanes.read(lambda connection: connection.execute("SELECT count(*) FROM quota_use").fetchone())

    assert sorted(written) == sorted(-number if number % 10 == 7 else number for number in range(30))
    assert kept == (27,)


async def test_a_read_does_not_wait_for_a_write(tmp_path: Path) -> None:
    going, written = threading.Event(), trio.Event()

    def wait(_connection: sqlite3.Connection) -> None:
        going.wait(5)

    async with open_lanes(Commits(tmp_path / "store.db"), timeout=10, outages=Outages("sqlite")) as lanes:

        async def write() -> None:
            await lanes.write(wait)
            written.set()

        with trio.fail_after(10):
            await lanes.write(lambda _connection: None)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                await lanes.read(lambda connection: connection.execute("SELECT 1").fetchone())
                before = written.is_set()
                going.set()

    assert not before


async def test_a_write_whose_caller_has_given_up_is_not_begun(tmp_path: Path) -> None:
    going = threading.Event()
    made: list[str] = []

    async def write(lanes: SqliteLanes, name: str, outcome: list[str]) -> None:
        def change(_connection: sqlite3.Connection) -> None:
            going.wait(20)
            made.append(name)

        try:
            await lanes.write(change)
        except StoreUnavailableError:
            outcome.append(name)

    given_up: list[str] = []
    async with open_lanes(Commits(tmp_path / "store.db"), timeout=0.5, outages=Outages("sqlite")) as lanes:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, lanes, "begun", given_up)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(write, lanes, "waiting", given_up)
        going.set()
        with trio.fail_after(20):
            while not made:  # noqa: ASYNC110 (a thread sets it)
                await trio.sleep(0.001)
        await trio.testing.wait_all_tasks_blocked(0.05)

    assert (sorted(given_up), made) == (["begun", "waiting"], ["begun"])


async def test_windows_of_long_ago_are_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    async with open_store(tmp_path / "store.db", now=clock) as store:
        key = (await store.keys.create("anna")).key
        for _ in range(100):
            await store.quotas.charge(key.id)
            clock.advance(days=1)
        lanes = store.keys._lanes  # type: ignore[attr-defined]
        kept = await lanes.read(lambda connection: connection.execute("SELECT count(*) FROM quota_use").fetchone())

    assert kept[0] < 80
