"""A guard that is used in unusual ways guards all the same, or says that it does not."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

import pytest
import trio
from trio.testing import MockClock
from upstream import collect, describe, open_guarded

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.streaming import StallGuard, StallLimits, open_stall_guard, stream_guarded

FIRST = StallLimits(first_event=5)
RUNS = 20
"""Trio reverses the order of the tasks that become runnable in one instant, or not, by chance."""


async def test_all_tasks_that_wait_are_told(autojump_clock: MockClock) -> None:
    told: list[float] = []

    async def read(guard: StallGuard) -> None:
        with pytest.raises(UpstreamStalledError):
            await guard.read(trio.sleep_forever)
        told.append(trio.current_time())

    async with open_stall_guard(FIRST) as guard, trio.open_nursery() as readers:
        for _ in range(3):
            readers.start_soon(read, guard)

    assert told == [5, 5, 5]


async def test_the_clock_runs_while_any_task_waits_and_no_longer(autojump_clock: MockClock) -> None:
    for _ in range(RUNS):
        began = trio.current_time()
        async with open_stall_guard(FIRST) as guard:
            async with trio.open_nursery() as readers:
                readers.start_soon(guard.read, partial(trio.sleep, 2))
                readers.start_soon(guard.read, partial(trio.sleep, 4))
            await trio.sleep(100)

            with pytest.raises(UpstreamStalledError):
                await guard.read(trio.sleep_forever)

        assert trio.current_time() - began == 4 + 100 + 1


@pytest.mark.parametrize(("outer", "inner"), [(5, 9), (9, 5), (5, 5)])
async def test_of_two_guards_round_one_wait_the_stricter_one_decides(
    autojump_clock: MockClock, outer: float, inner: float
) -> None:
    async with open_stall_guard(StallLimits(outer)) as one, open_stall_guard(StallLimits(inner)) as other:
        with pytest.raises(UpstreamStalledError):
            await one.read(partial(other.read, trio.sleep_forever))

    assert trio.current_time() == 5


@pytest.mark.parametrize("limits", [FIRST, StallLimits()])
async def test_one_whose_block_has_been_left_refuses_to_wait(autojump_clock: MockClock, limits: StallLimits) -> None:
    async with open_stall_guard(limits) as guard:
        pass

    with pytest.raises(trio.ClosedResourceError, match=r"^the block of this guard has been left$"):
        await guard.read(trio.sleep_forever)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_what_ends_the_program_passes_as_it_is(autojump_clock: MockClock, error: BaseException) -> None:
    async def interrupted() -> AsyncGenerator[str, None]:
        yield "P"
        raise error

    with pytest.raises(type(error)) as caught:
        async with open_guarded(aclosing(interrupted())) as events:
            await collect(events)

    assert caught.value is error


async def test_what_cannot_be_described_is_a_defect_told_as_it_was_raised(autojump_clock: MockClock) -> None:
    def fail(item: str) -> None:
        raise LookupError(item)

    with pytest.raises(LookupError, match="P"):
        async with open_guarded("0 P", describe=fail) as events:
            await collect(events)


async def test_a_defect_of_upstream_leaves_the_stream_alone_and_not_in_a_group(autojump_clock: MockClock) -> None:
    async def defective() -> AsyncGenerator[str, None]:
        yield "P"
        raise LookupError

    async with open_stall_guard(FIRST) as guard:
        with pytest.raises(LookupError):
            async with stream_guarded(aclosing(defective()), guard, describe=describe) as events:
                await collect(events)


async def test_a_failing_clean_up_of_upstream_does_not_hide_why_its_consumer_left(autojump_clock: MockClock) -> None:
    async def fragile() -> AsyncGenerator[str, None]:
        try:
            yield "P"
            await trio.sleep_forever()
        finally:
            raise ConnectionResetError

    with pytest.raises(LookupError):
        async with open_guarded(aclosing(fragile())) as events:
            raise LookupError(await events.receive())
