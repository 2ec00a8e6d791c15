"""Nothing of a child outlives its request, whatever state either is in."""

import os
import signal
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import fake_program
import pytest
import trio
import trio.testing
import watching
from fake_backend import LIMIT, FakeBackend, ask, collect, open_fake, request, seen, words
from fake_script import (
    Step,
    burst,
    exits,
    grandchild,
    hang,
    ignore_sigterm,
    linger,
    mark,
    message_end,
    own_user_message,
    success,
    text,
    wait_for,
)

from ocp_trio.completion import Completed, CompletionRequest, Failed, Message, Started, Text, TextDelta
from ocp_trio.errors import UpstreamIncompleteError

HISTORY = (Message("user", (Text("one"),)), Message("assistant", (Text("two"),)))


def gone(pid: int) -> bool:
    """Whether a process has ended and been reaped."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def read_and_forget(fake: FakeBackend, asked: CompletionRequest, scope: trio.CancelScope) -> None:
    with scope:
        async with fake.backend.stream(asked) as batches:
            await collect(batches)


async def cancel_at(fake: FakeBackend, name: str, *steps: Step) -> fake_program.Record:
    """Cancel a request once its child has come to the mark ``name``, and return what the child saw."""
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(read_and_forget, fake, request(*steps), scope)
        await fake.record(mark=name)
        scope.cancel()
    [record] = fake.records()
    return record


# At each stage


async def test_a_request_that_leaves_the_queue_never_starts_a_child(tmp_path: Path) -> None:
    async with open_fake(tmp_path, max_concurrent=1) as fake, trio.open_nursery() as nursery:
        first, second = trio.CancelScope(), trio.CancelScope()
        nursery.start_soon(read_and_forget, fake, request(mark("begun"), hang()), first)
        await fake.record(mark="begun")
        nursery.start_soon(read_and_forget, fake, request(), second)
        await trio.testing.wait_all_tasks_blocked()
        queued = fake.backend.slots.queued
        second.cancel()
        await trio.testing.wait_all_tasks_blocked()

        assert (queued, fake.backend.slots.queued) == (1, 0)
        first.cancel()

    assert len(fake.records()) == 1


@pytest.mark.parametrize("history", [(), HISTORY], ids=["silent", "in the middle of its history"])
async def test_a_child_that_has_not_said_anything_is_ended(tmp_path: Path, history: Iterable[Message]) -> None:
    async with open_fake(tmp_path, startup=[mark("begun"), hang(deaf=True)]) as fake, trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        nursery.start_soon(read_and_forget, fake, request(history=history), scope)
        record = await fake.record(mark="begun")
        scope.cancel()

    assert gone(record.pid)
    assert fake.backend.slots.in_flight == 0


async def test_a_child_in_mid_stream_is_ended(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        record = await cancel_at(fake, "told", text("a"), mark("told"), hang())

        assert gone(record.pid)
        assert (record.signals, fake.backend.slots.in_flight) == (["SIGTERM"], 0)


async def test_a_child_whose_answer_is_complete_is_ended(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        record = await cancel_at(fake, "told", linger(), text("a"), success(), mark("told"), hang())

        assert gone(record.pid)


async def test_a_child_whose_consumer_is_parked_is_ended(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake, trio.open_nursery() as nursery:
        scope, parked = trio.CancelScope(), trio.Event()

        async def park() -> None:
            with scope:
                async with fake.backend.stream(request(burst(1_000_000))) as batches:
                    async for batch in batches:
                        if any(isinstance(event, TextDelta) for event in batch):
                            parked.set()
                            await trio.sleep_forever()

        nursery.start_soon(park)
        await parked.wait()
        [record] = fake.records()
        assert not gone(record.pid)
        scope.cancel()

    assert gone(record.pid)


async def test_a_consumer_that_is_parked_is_told_of_the_childs_death_when_it_comes_back(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake, fake.backend.stream(request(text("a"), exits(1))) as batches:
        first = await anext(batches)
        [record] = [await fake.record()]
        await watching.wait_gone(record.pid)
        while fake.backend.slots.in_flight:
            await trio.lowlevel.checkpoint()

        rest = await collect(batches)

    assert first == (Started(),)
    assert words(rest) == "a"
    assert isinstance(rest[-1], Failed)


# Children that will not go


async def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    async with open_fake(tmp_path, grace_period=0.2, max_concurrent=1) as fake:
        record = await cancel_at(fake, "told", ignore_sigterm(), mark("told"), hang())

        assert gone(record.pid)
        assert (record.signals, record.exit_status) == (["SIGTERM"], None)
        assert words(await ask(fake)) == "ok"


@pytest.mark.parametrize("ignores_sigterm", [False, True])
@pytest.mark.parametrize("own_session", [False, True])
async def test_grandchildren_go_with_their_parent(tmp_path: Path, own_session: bool, ignores_sigterm: bool) -> None:
    left_behind = grandchild(own_session=own_session, ignores_sigterm=ignores_sigterm)

    async with open_fake(tmp_path, grace_period=0.2) as fake:
        record = await cancel_at(fake, "told", left_behind, mark("told"), hang())

    with trio.fail_after(LIMIT):
        await watching.wait_gone(record.pid, *record.grandchildren)
    assert len(record.grandchildren) == 1


async def test_a_grandchild_that_holds_the_output_does_not_hold_the_answer(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        complete = await ask(fake, grandchild(holds_stdout=True), text("a"), success())
        dead = await ask(fake, grandchild(holds_stdout=True), text("a"), exits(0))
        grandchildren = [pid for record in fake.records() for pid in record.grandchildren]

    with trio.fail_after(LIMIT):
        await watching.wait_gone(*grandchildren)
    assert [type(events[-1]) for events in (complete, dead)] == [Completed, Failed]
    assert seen(dead)[-1] == (UpstreamIncompleteError, "the claude process ended without completing its answer")


async def test_a_child_that_would_go_on_with_a_cut_answer_is_not_waited_for(tmp_path: Path) -> None:
    cut = (text("part"), message_end("max_tokens"), own_user_message("Resume directly."))
    never = tmp_path / "never"

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, *cut, text("more"), wait_for(never), success())
        [record] = fake.records()

    assert seen(events)[0] == TextDelta("part")
    assert (type(events[-1]), record.saw_eof, record.signals) == (Completed, False, ["SIGTERM"])


# Parents that are killed

PARENT = """
import sys, trio
sys.path[:0] = [sys.argv[2]]
from fake_backend import collect, request
from fake_script import hang, text
from ocp_trio.claude import open_claude

async def main():
    async with open_claude(sys.argv[1], environment={"HOME": "/nonexistent"}) as backend:
        async with backend.stream(request(text("a"), hang())) as batches:
            await collect(batches)

trio.run(main)
"""


async def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = fake_program.install(tmp_path)
    command = [sys.executable, "-c", PARENT, str(program), str(Path(__file__).parent)]

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            # A killed parent leaves its temporary folders behind.
            run_parent = partial(trio.run_process, command, env={"TMPDIR": str(tmp_path)}, check=False)
            parent = await nursery.start(run_parent)
            [record] = await watching.wait_for(
                tmp_path / "records", lambda: [run for run in fake_program.records(tmp_path) if run.queries]
            )
            assert record.ppid == parent.pid
            parent.send_signal(signal.SIGKILL)
            await watching.wait_gone(record.pid)

    assert parent.returncode == -signal.SIGKILL
