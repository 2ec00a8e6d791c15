"""Any iterable of events can be guarded; it has exactly one end, and what comes after it is dropped."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext

import pytest
import trio
from trio.testing import MockClock
from upstream import Upstream, collect, describe, observe, open_guarded

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.streaming import Sighting, StallGuard, StallLimits, open_stall_guard, stream_guarded


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Collect what is logged."""
    caplog.set_level("INFO", "ocp_trio.streaming")
    return caplog


def late_events(log: pytest.LogCaptureFixture) -> list[tuple[str, float]]:
    """Return kind and delay of what was logged as late; nothing else is logged."""
    assert {record.message for record in log.records} <= {"late_event"}
    return [(vars(record)["kind"], round(vars(record)["delay"], 9)) for record in log.records]


# Sources


class Counting:
    """An iterator that is no generator."""

    def __init__(self) -> None:
        self._left = ["P", "P", "T"]

    def __aiter__(self) -> "Counting":
        return self

    async def __anext__(self) -> str:
        await trio.sleep(1)
        return self._left.pop(0)


async def test_an_iterator_of_any_class_can_be_guarded(autojump_clock: MockClock) -> None:
    async with open_guarded(nullcontext(Counting())) as events:
        assert await collect(events) == [(1, "P"), (2, "P"), (3, "T"), (3, "end")]


async def test_a_channel_can_be_guarded(autojump_clock: MockClock) -> None:
    send, receive = trio.open_memory_channel[str](0)
    async with open_guarded(receive) as events:
        await send.send("P")

        assert await collect(events) == [(0, "P"), (5, "stalled: idle")]

    with pytest.raises(trio.BrokenResourceError):
        await send.send("T")


# The order of an end


async def test_upstream_has_been_cancelled_and_cleaned_up_when_a_stall_is_told(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P", clean_up=3)

    assert await observe(upstream) == [(0, "P"), (8, "stalled: idle")]
    assert upstream.events == [(0, "opened"), (5, "cancelled"), (8, "left")]


@pytest.mark.parametrize(("sequence", "end"), [("0 P; 1 T", "end"), ("0 P; 1 end", "incomplete")])
async def test_upstreams_own_end_is_told_while_it_is_cleaned_up(
    autojump_clock: MockClock, sequence: str, end: str
) -> None:
    upstream = Upstream(sequence, clean_up=30)

    async with open_guarded(upstream) as events:
        assert (await collect(events))[-1] == (1, end)

    assert upstream.events == [(0, "opened"), (31, "left")]


async def test_an_end_is_told_once(autojump_clock: MockClock) -> None:
    async with open_guarded("0 P") as events:
        assert (await collect(events))[-1] == (5, "stalled: idle")

        assert await collect(events) == [(5, "end")]


# Which end


async def test_a_done_that_a_slow_consumer_takes_after_the_deadline_is_the_end(autojump_clock: MockClock) -> None:
    async with open_guarded("0 P; 4 T") as events:
        await trio.sleep(100)  # row 26

        assert await collect(events) == [(100, "P"), (100, "T"), (100, "end")]


@pytest.mark.parametrize("sequence", ["0 P; 1 E; 2 T", "0 P; 1 E T", "0 P; 1 T T", "0 P; 1 T; 1 P"])
async def test_only_the_first_terminal_event_is_passed_on(autojump_clock: MockClock, sequence: str) -> None:
    first = sequence.removeprefix("0 P; 1 ")[0]

    assert await observe(sequence) == [(0, "P"), (1, first), (1, "end")]  # rows 27, 28


async def test_the_end_of_a_stream_without_a_finish_is_never_success(autojump_clock: MockClock) -> None:
    assert await observe("0 P; 1 end") == [(0, "P"), (1, "incomplete")]  # row 29


@pytest.mark.parametrize(("item", "end"), [("P", "end"), ("R", "incomplete")])
async def test_a_mark_of_the_end_alone_can_be_made_to_complete_visible_text_only(
    autojump_clock: MockClock, item: str, end: str
) -> None:
    visible: list[bool] = []

    def describe_mark(letter: str) -> Sighting | None:
        event = describe(letter)
        visible.append(event is not None and event.visible)
        return Sighting("[DONE]", terminal=any(visible)) if letter == "T" else event

    async with open_guarded(f"0 {item} T end", describe=describe_mark) as events:
        assert await collect(events) == [(0, item), (0, "T"), (0, end)]  # row 30


async def test_after_a_finish_usage_has_two_seconds_to_come(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P F; 0.5 N")

    assert await observe(upstream) == [(0, "P"), (0, "F"), (0.5, "N"), (2, "end")]  # row 18
    assert upstream.events == [(0, "opened"), (2, "cancelled"), (2, "left")]


async def test_a_second_finish_does_not_extend_them(autojump_clock: MockClock) -> None:
    assert await observe("0 P F; 1 F") == [(0, "P"), (0, "F"), (1, "F"), (2, "end")]


async def test_they_replace_the_idle_limit(autojump_clock: MockClock) -> None:
    assert await observe("0 P F", StallLimits(idle=1)) == [(0, "P"), (0, "F"), (2, "end")]


async def test_after_a_terminal_event_nothing_is_waited_for(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P F T")

    assert await observe(upstream) == [(0, "P"), (0, "F"), (0, "T"), (0, "end")]  # row 19
    assert upstream.events == [(0, "opened"), (0, "left")]


@pytest.mark.parametrize("end", ["end", "fails"])
async def test_after_a_finish_any_end_of_the_stream_is_a_good_one(autojump_clock: MockClock, end: str) -> None:
    assert await observe(f"0 P F; 1 {end}") == [(0, "P"), (0, "F"), (1, "end")]
    assert (await observe(f"0 P F N; 1 {end}"))[-1] == (1, "end")


# What is late


@pytest.mark.parametrize(("item", "kind"), [("T", "done"), ("S", "str")])
async def test_what_comes_after_the_verdict_is_dropped_and_logged(
    autojump_clock: MockClock, log: pytest.LogCaptureFixture, item: str, kind: str
) -> None:
    async def stubborn() -> AsyncGenerator[str, None]:
        yield "P"
        with trio.CancelScope(shield=True):
            await trio.sleep_until(5.001)
        yield item

    async with open_guarded(aclosing(stubborn())) as events:
        seen = await collect(events)

    assert seen == [(0, "P"), (5.001, "stalled: idle")]  # row 24
    assert late_events(log) == [(kind, 0.001)]


async def test_so_is_what_a_shielded_read_returns(autojump_clock: MockClock, log: pytest.LogCaptureFixture) -> None:
    async def shielded() -> bytes:
        with trio.CancelScope(shield=True):
            await trio.sleep(7)
        return b"late"

    async with open_stall_guard(StallLimits(first_event=5)) as guard:
        with pytest.raises(UpstreamStalledError):
            await guard.read(shielded)

    assert trio.current_time() == 7
    assert late_events(log) == [("bytes", 2)]


@asynccontextmanager
async def failing_exit(guard: StallGuard, sequence: str) -> AsyncIterator[AsyncGenerator[str, None]]:
    """Open an upstream whose connection breaks when it is left."""
    async with Upstream(sequence, clean_up=1).open(guard) as items:
        yield items
    raise ConnectionResetError


@pytest.mark.parametrize(("sequence", "end", "delay"), [("0 P; 1 T", (1, "end"), 1), ("0 P F; 1 end", (1, "end"), 1)])
async def test_what_fails_after_the_end_is_logged_and_not_told(
    autojump_clock: MockClock, log: pytest.LogCaptureFixture, sequence: str, end: tuple[float, str], delay: float
) -> None:
    async with (
        open_stall_guard(StallLimits(idle=5)) as guard,
        stream_guarded(failing_exit(guard, sequence), guard, describe=describe) as events,
    ):
        seen = await collect(events)

    assert seen[-1] == (1, "end")
    assert late_events(log) == [("ConnectionResetError", 1)]


async def test_so_is_what_fails_because_of_a_stall(autojump_clock: MockClock, log: pytest.LogCaptureFixture) -> None:
    async def fragile() -> AsyncGenerator[str, None]:
        yield "P"
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            raise ConnectionResetError

    async with open_guarded(aclosing(fragile())) as events:
        seen = await collect(events)

    assert seen == [(0, "P"), (8, "stalled: idle")]
    assert late_events(log) == [("ConnectionResetError", 3)]
