"""A bounded number of children runs at once, and a bounded number of requests waits for them in order."""

import pytest
import trio
import trio.testing

from ocp_trio.claude.slots import Slots
from ocp_trio.errors import QueueFullError


async def hold(slots: Slots, log: list[tuple[float, int]], number: int) -> None:
    async with slots.take():
        log.append((trio.current_time(), number))
        await trio.sleep(10 + number)


async def start_five(nursery: trio.Nursery, slots: Slots) -> list[tuple[float, int]]:
    """Let five requests come one after the other; return the log of when which of them was served."""
    log: list[tuple[float, int]] = []
    for number in range(5):
        nursery.start_soon(hold, slots, log, number)
        await trio.testing.wait_all_tasks_blocked()
    return log


async def test_requests_are_served_in_the_order_of_their_arrival(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    slots = Slots(2, 3, retry_after=5)
    began = trio.current_time()

    log = await start_five(nursery, slots)
    counts = (slots.in_flight, slots.queued, slots.max_concurrent)
    await trio.sleep(40)

    assert counts == (2, 3, 2)
    assert [(time - began, number) for time, number in log] == [(0, 0), (0, 1), (10, 2), (11, 3), (22, 4)]
    assert (slots.in_flight, slots.queued, slots.rejections) == (0, 0, 0)


async def test_a_full_queue_refuses_at_once_and_says_when_to_come_again(nursery: trio.Nursery) -> None:
    slots = Slots(2, 3, retry_after=7)
    await start_five(nursery, slots)

    with pytest.raises(QueueFullError, match="all 2 slots are taken and 3 requests wait") as refusal:
        async with slots.take():
            pass

    assert (refusal.value.retry_after, slots.rejections, slots.queued) == (7, 1, 3)
    nursery.cancel_scope.cancel()


async def test_without_a_queue_only_a_free_slot_serves() -> None:
    slots = Slots(1, 0, retry_after=1)

    async with slots.take():
        with pytest.raises(QueueFullError):
            async with slots.take():
                pass
    async with slots.take():
        assert slots.in_flight == 1


async def test_a_waiter_that_leaves_makes_room_at_once(nursery: trio.Nursery) -> None:
    slots = Slots(1, 1, retry_after=1)
    async with slots.take():
        with trio.CancelScope() as leaving:
            nursery.start_soon(_cancel_when_blocked, leaving)
            async with slots.take():
                pass
        queued = slots.queued

    assert (leaving.cancelled_caught, queued, slots.in_flight) == (True, 0, 0)


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


async def test_a_slot_may_be_released_before_its_block_ends_and_only_once() -> None:
    slots = Slots(1, 0, retry_after=1)

    async with slots.take() as slot:
        slot.release()
        slot.release()
        async with slots.take():
            assert slots.in_flight == 1
        assert slots.in_flight == 0
    assert slots.in_flight == 0


async def test_an_error_frees_the_slot() -> None:
    slots = Slots(1, 0, retry_after=1)

    with pytest.raises(ZeroDivisionError):
        async with slots.take():
            raise ZeroDivisionError

    assert slots.in_flight == 0


async def test_more_slots_are_given_to_those_who_wait_and_fewer_take_nobodys_away(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    slots = Slots(1, 9, retry_after=5)
    began = trio.current_time()

    log = await start_five(nursery, slots)
    slots.resize(3, 0, 7)
    await trio.testing.wait_all_tasks_blocked()
    more = slots.in_flight
    slots.resize(1, 0, 7)
    with pytest.raises(QueueFullError) as refusal:
        await hold(slots, log, 5)
    await trio.sleep(100)

    assert (more, refusal.value.retry_after) == (3, 7)
    # Two end before the third does; the fourth waits for that one. Trio runs those of one instant in any order.
    assert sorted((time - began, number) for time, number in log) == [(0, 0), (0, 1), (0, 2), (12, 3), (25, 4)]
