"""Any receive stream can be guarded: its bytes are life."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
import trio
import trio.testing
from trio.testing import MockClock
from upstream import IDLE, Timeline, collect, describe

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.streaming import GuardedStream, Sighting, StallLimits, open_stall_guard, stream_guarded

FIRST = StallLimits(first_event=5, idle=5)


async def test_it_passes_bytes_and_the_end_unchanged(autojump_clock: MockClock) -> None:
    send, receive = trio.testing.memory_stream_one_way_pair()
    async with open_stall_guard(IDLE) as guard:
        stream = GuardedStream(receive, guard)
        await send.send_all(b"abc")
        await send.aclose()

        assert [await stream.receive_some(size) for size in (2, None, None)] == [b"ab", b"c", b""]


async def test_each_piece_opens_the_idle_window_anew(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    send, receive = trio.testing.memory_stream_one_way_pair()
    seen: Timeline = []

    async def drip() -> None:
        for _ in range(3):
            await trio.sleep(4)
            await send.send_all(b"a")

    async def read() -> None:
        async with open_stall_guard(FIRST) as guard:
            async for data in GuardedStream(receive, guard):
                seen.append((trio.current_time(), data.decode()))

    nursery.start_soon(drip)
    with pytest.raises(UpstreamStalledError) as caught:
        await read()

    assert seen == [(4, "a"), (8, "a"), (12, "a")]
    assert trio.current_time() == 17
    assert (caught.value.facts.bytes, caught.value.facts.events) == (3, 0)


async def test_a_stalled_read_has_ended_when_the_stall_is_told(autojump_clock: MockClock) -> None:
    _, receive = trio.testing.memory_stream_one_way_pair()
    async with open_stall_guard(FIRST) as guard:
        with pytest.raises(UpstreamStalledError):
            await GuardedStream(receive, guard).receive_some()

        # A second read at once would be refused.
        with trio.move_on_after(1) as second:
            await receive.receive_some()

    assert second.cancelled_caught


async def test_a_stall_is_final(autojump_clock: MockClock) -> None:
    send, receive = trio.testing.memory_stream_one_way_pair()
    async with open_stall_guard(FIRST) as guard:
        stream = GuardedStream(receive, guard)
        with pytest.raises(UpstreamStalledError) as first:
            await stream.receive_some()
        await send.send_all(b"late")

        with pytest.raises(UpstreamStalledError) as second:
            await stream.receive_some()

    assert second.value is first.value


async def test_after_it_nothing_is_waited_for(autojump_clock: MockClock) -> None:
    async with open_stall_guard(FIRST) as guard:
        for _ in range(2):
            with pytest.raises(UpstreamStalledError):
                await guard.read(trio.sleep_forever)

    assert trio.current_time() == 5


async def test_the_callers_own_cancellation_is_no_stall(autojump_clock: MockClock) -> None:
    _, receive = trio.testing.memory_stream_one_way_pair()

    with trio.move_on_at(5) as caller:
        async with open_stall_guard(FIRST) as guard:
            await GuardedStream(receive, guard).receive_some()

    assert caller.cancelled_caught


async def test_closing_it_closes_the_stream_beneath(autojump_clock: MockClock) -> None:
    send, receive = trio.testing.memory_stream_one_way_pair()
    async with open_stall_guard(IDLE) as guard:
        await GuardedStream(receive, guard).aclose()

    with pytest.raises(trio.BrokenResourceError):
        await send.send_all(b"a")


async def test_it_ends_two_seconds_after_the_answers_finish(autojump_clock: MockClock) -> None:
    _, receive = trio.testing.memory_stream_one_way_pair()
    async with open_stall_guard(IDLE) as guard:
        guard.saw_event(Sighting("finish", finish=True))

        assert await GuardedStream(receive, guard).receive_some() == b""

    assert trio.current_time() == 2


@pytest.mark.parametrize("limits", [FIRST, StallLimits()])
async def test_so_does_a_wait_in_whose_middle_the_finish_is_seen(
    autojump_clock: MockClock, limits: StallLimits
) -> None:
    async with open_stall_guard(limits) as guard:

        async def receive() -> None:
            await trio.sleep(1)
            guard.saw_event(Sighting("finish", finish=True))
            await trio.sleep_forever()

        with pytest.raises(trio.EndOfChannel, match=r"^the answer was finished$"):
            await guard.read(receive)

    assert trio.current_time() == 3


async def test_the_end_of_a_stream_is_no_sign_of_life(autojump_clock: MockClock) -> None:
    send, receive = trio.testing.memory_stream_one_way_pair()
    await send.aclose()
    async with open_stall_guard(FIRST) as guard:
        await trio.sleep(3)
        await GuardedStream(receive, guard).receive_some()

        with pytest.raises(UpstreamStalledError) as caught:
            await guard.read(trio.sleep_forever)

    assert (caught.value.facts.phase, caught.value.facts.bytes) == ("creation", 0)


@pytest.mark.parametrize("sign", ["created", "bytes", "event"])
async def test_with_any_sign_of_it_a_stream_has_been_created(autojump_clock: MockClock, sign: str) -> None:
    async with open_stall_guard(FIRST) as guard:
        match sign:
            case "created":
                guard.created()
            case "bytes":
                guard.saw_bytes(1)
            case _:
                guard.saw_event(Sighting("boundary"))
        with pytest.raises(UpstreamStalledError) as caught:
            await guard.read(trio.sleep_forever)

    assert caught.value.facts.phase == "first_event"


async def test_events_may_be_read_from_a_stream_under_the_same_guard(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    send, receive = trio.testing.memory_stream_one_way_pair()

    async def serve() -> None:
        await send.send_all(b"P")
        while True:
            await trio.sleep(10)
            await send.send_all(b":")

    async def decode(stream: trio.abc.ReceiveStream) -> AsyncGenerator[str, None]:
        async for data in stream:
            for letter in data.decode().replace(":", ""):
                yield letter

    nursery.start_soon(serve)
    async with open_stall_guard(StallLimits(idle=30, keepalive_cap=120)) as guard:
        source = aclosing(decode(GuardedStream(receive, guard)))
        async with stream_guarded(source, guard, describe=describe) as events:
            seen = await collect(events)
    nursery.cancel_scope.cancel()

    assert seen == [(0, "P"), (120, "stalled: keepalive_only")]
