"""Whatever is done to children that wait, and in whatever order: each is used by one at a time, and none is lost."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ocp_trio.claude.children import Children, open_children
from ocp_trio.claude.lease import Lease
from ocp_trio.errors import ChildSpawnError
from ocp_trio.testing import ScriptedChild, ScriptedProgram

ALIVE = b'{"type":"control_response"}\n'
USES = 300


@asynccontextmanager
async def open_scripted(program: ScriptedProgram, **options: Any) -> AsyncIterator[Children]:
    options = {"warm": 2, "max_conversations": 3, "end_within": 7.0, **options}
    async with open_children(partial(program.open, ["claude"], env={}), lambda: 0, **options) as children:
        yield children


def waits(**options: Any) -> ScriptedProgram:
    """Return a program that is silent until it is asked, for ever."""
    return ScriptedProgram([inf], **{"reply": ALIVE, **options})


def program_of(lease: Lease) -> ScriptedChild:
    assert isinstance(lease.child, ScriptedChild)
    return lease.child


@pytest.mark.parametrize("seed", range(5))
async def test_three_hundred_uses_in_any_order_lose_no_child_and_share_none(
    autojump_clock: MockClock, seed: int
) -> None:
    chance = random.Random(seed)
    program = waits(obeys_after=0.5)
    used: set[int] = set()
    done = 0

    async def use(children: Children, number: int) -> None:
        nonlocal done
        name = b"%d" % (number % 7)
        await trio.sleep(chance.uniform(0, 100))
        with trio.move_on_after(chance.choice([0.0, 0.1, 1.0, 5.0, inf])):
            async with children.lend([(1, name)]) as lease:
                assert id(lease.child) not in used
                used.add(id(lease.child))
                try:
                    await trio.sleep(chance.uniform(0, 4))
                    if chance.random() < 0.1:
                        program_of(lease).exit(1)
                finally:
                    used.remove(id(lease.child))
                children.keep(lease, chance.choice([name, None]), first_turn=chance.random() < 0.3)
                done += 1

    async with open_scripted(program) as children:
        async with trio.open_nursery() as nursery:
            for number in range(USES):
                nursery.start_soon(use, children, number)

        counts = children.counts
        assert (done <= counts.hits + counts.misses + counts.continued <= USES, used) == (True, set())
        assert (counts.hits > 0, counts.misses > 0, counts.continued > 0) == (True, True, True)
        assert children.conversations <= 3
        await trio.sleep(1)
        assert program.running == children.waiting + children.conversations
    assert program.running == 0
    assert all(child.exited.is_set() for child in program.runs)


async def test_a_child_that_hangs_is_not_used(autojump_clock: MockClock) -> None:
    program = waits(reply=b"")

    async with open_scripted(program, warm=1) as children:
        await trio.sleep(30)
        began = trio.current_time()

        async with children.lend([]) as lease:
            assert trio.current_time() - began == 0.5
            assert program_of(lease) is not program.runs[0]


async def test_one_that_has_only_just_been_started_may_still_be_silent(autojump_clock: MockClock) -> None:
    program = waits(reply=b"")

    async with open_scripted(program, warm=1) as children:
        await trio.sleep(1)

        async with children.lend([]) as lease:
            assert program_of(lease) is program.runs[0]


@pytest.mark.parametrize("seconds", [1, 60])
async def test_one_that_hangs_in_its_conversation_is_replaced_too(autojump_clock: MockClock, seconds: float) -> None:
    program = waits()

    async with open_scripted(program, warm=0) as children:
        async with children.lend([]) as lease:
            children.keep(lease, b"name")
            program_of(lease).reply = b""
        await trio.sleep(seconds)

        async with children.lend([(1, b"name")]) as lease:
            assert (program_of(lease) is program.runs[1], lease.known) == (True, 0)


async def test_a_waiting_child_is_replaced_after_ten_minutes(autojump_clock: MockClock) -> None:
    program = waits()

    async with open_scripted(program, warm=1) as children:
        await trio.sleep(600 + 2)

        assert (len(program.runs), children.counts.replaced, children.waiting) == (2, 1, 1)
        assert program.runs[0].exited.is_set()


@pytest.mark.parametrize(("first_turn", "limit"), [(True, 2.5), (False, 300)])
async def test_a_conversation_waits_for_its_next_turn_for_a_while(
    autojump_clock: MockClock, first_turn: bool, limit: float
) -> None:
    program = waits()

    async with open_scripted(program, warm=0) as children:
        async with children.lend([]) as lease:
            children.keep(lease, b"name", first_turn=first_turn)
        await trio.sleep(limit - 0.1)
        assert children.conversations == 1
        await trio.sleep(0.2)
        assert (children.conversations, program.running) == (0, 0)


async def test_starts_that_fail_are_tried_again_ever_more_rarely(autojump_clock: MockClock) -> None:
    program = ScriptedProgram([], refuse=ChildSpawnError("it is missing"))

    async with open_scripted(program, warm=1) as children:
        counted = []
        for _ in range(4):
            await trio.sleep(60)
            counted.append(children.counts.failed_starts)

    # After 0, 1, 3, 7, 15, 31 s, then once a minute.
    assert counted == [6, 7, 8, 9]


async def test_a_request_that_leaves_while_it_takes_a_child_leaves_none_behind(autojump_clock: MockClock) -> None:
    program = waits(reply=b"")

    async with open_scripted(program, warm=1) as children:
        await trio.sleep(30)
        with trio.move_on_after(0.2) as scope:
            async with children.lend([]):
                pytest.fail("it hangs")

        assert scope.cancelled_caught
        await trio.sleep(1)
        assert program.running == children.waiting == 1
