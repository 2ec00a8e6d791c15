"""Many requests at once share the slots, and leave nothing behind."""

import os
import random
from pathlib import Path

import trio
import trio.testing
import watching
from fake_backend import LIMIT, ask, collect, open_fake, request, words
from fake_script import exits, hang, mark, success, text, wait_for

from ocp_trio.claude import ClaudeBackend, open_claude
from ocp_trio.completion import Completed

QUICK = r"""#!/bin/sh
while read -r line; do
    case $line in *client_composed*)
        sleep 0.01
        echo '{"type":"result","result":"ok"}' ;;
    esac
done
"""
"""A program that answers in a few milliseconds."""


async def test_a_slot_is_free_when_the_child_has_exited_although_nobody_reads(tmp_path: Path) -> None:
    async with open_fake(tmp_path, max_concurrent=1, max_queue=1) as fake:
        unread = fake.backend.stream(request(text("a"), success(), exits(0)))
        async with unread as batches:
            assert words(await ask(fake, text("b"), success())) == "b"
            assert words(await collect(batches)) == "a"


async def test_requests_wait_for_a_slot_in_order(tmp_path: Path) -> None:
    go = tmp_path / "go"
    answered: list[int] = []

    async with open_fake(tmp_path, max_concurrent=1, max_queue=3) as fake, trio.open_nursery() as nursery:

        async def one(number: int) -> None:
            assert words(await ask(fake, mark("begun"), wait_for(go), text(str(number)), success())) == str(number)
            answered.append(number)

        for number in range(4):
            nursery.start_soon(one, number)
            await trio.testing.wait_all_tasks_blocked()
        await fake.record(mark="begun")
        assert (fake.backend.slots.in_flight, fake.backend.slots.queued) == (1, 3)
        go.touch()

    assert answered == [0, 1, 2, 3]


async def test_a_slot_is_not_free_before_a_cancelled_child_has_been_reaped(tmp_path: Path) -> None:
    async with open_fake(tmp_path, max_concurrent=1) as fake:
        for index in range(3):
            async with fake.backend.stream(request(mark("begun"), hang())):
                await fake.record(mark="begun", index=index)
            assert fake.backend.slots.in_flight == 0

    assert [record.exit_status for record in fake.records()] == [143, 143, 143]


async def test_three_hundred_requests_half_of_them_cancelled_leave_nothing_behind(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(QUICK)
    program.chmod(0o755)
    answered: list[bool] = []

    async def one(backend: ClaudeBackend, patience: float) -> None:
        with trio.move_on_after(patience):
            async with backend.stream(request()) as batches:
                answered.append(isinstance((await collect(batches))[-1], Completed))

    with trio.fail_after(3 * LIMIT):
        async with open_claude(str(program), environment={"HOME": str(tmp_path)}, max_queue=300) as backend:
            await one(backend, LIMIT)
            files, threads = watching.holdings(os.getpid())
            async with trio.open_nursery() as nursery:
                for number in range(300):
                    patience = random.uniform(0, 1.5) if number % 2 else 3 * LIMIT
                    nursery.start_soon(one, backend, patience)

            assert (backend.slots.in_flight, backend.slots.queued) == (0, 0)
            assert watching.children(os.getpid()) == []
            # There may be fewer threads: Trio gives up those that it has not needed for ten seconds.
            files_now, threads_now = watching.holdings(os.getpid())
            assert files_now == files
            assert threads_now <= threads

    assert all(answered)
    assert len(answered) > 150
