"""A live stream is never killed; a dead one always ends with one clear error."""

import time
from functools import partial
from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock
from upstream import Upstream, collect, observe, open_guarded, parse

from ocp_trio.errors import StallFacts, UpstreamStalledError
from ocp_trio.streaming import Sighting, StallLimits, open_stall_guard


def every(seconds: int, item: str, *, until: int, since: int = 0) -> str:
    """Return a sequence of ``item`` each so many seconds, first so many after ``since``."""
    return "; ".join(f"{at} {item}" for at in range(since + seconds, until + 1, seconds))


async def survives(sequence: str, limits: StallLimits) -> None:
    """Check that a sequence arrives whole, each item in its time, and that its end is a good one."""
    expected = [(at, item) for at, item in parse(sequence) if item != "c"]

    assert await observe(sequence, limits) == [*expected, (expected[-1][0], "end")]


# The report, and its opposite


async def test_boundaries_are_life_and_the_done_after_them_is_delivered(autojump_clock: MockClock) -> None:
    seen = await observe("0 S P; 3 B; 6 B; 7 T", StallLimits(idle=5))  # row 1

    assert seen == [(0, "S"), (0, "P"), (3, "B"), (6, "B"), (7, "T"), (7, "end")]


async def test_keep_alive_bytes_for_ever_end_at_their_cap(autojump_clock: MockClock) -> None:
    sequence = f"0 P; {every(10, 'c', until=1000)}"

    seen = await observe(sequence, StallLimits(idle=30, keepalive_cap=120))  # row 14

    assert seen == [(0, "P"), (120, "stalled: keepalive_only")]


# Live streams


async def test_deliberation_between_two_tool_calls_may_take_any_time(autojump_clock: MockClock) -> None:
    await survives("0 P; 1 B; 101 B; 201 B; 301 B; 401 B; 410 P; 411 T", StallLimits(idle=120))  # row 2


async def test_a_local_start_does_not_start_the_short_window(autojump_clock: MockClock) -> None:
    await survives("0 S; 6 P; 7 T", StallLimits(first_event=10, idle=5))  # row 3


async def test_a_boundary_before_the_first_content_does_not_shorten_the_first_window(
    autojump_clock: MockClock,
) -> None:
    await survives("0 S; 1 B; 6 P; 7 T", StallLimits(first_event=10, idle=5))  # row 4


async def test_bytes_keep_the_idle_window_open(autojump_clock: MockClock) -> None:
    content = "; ".join(f"{number} P" for number in range(8))

    await survives(f"{content}; {every(15, 'c', since=1, until=91)}; 91.4 P T", StallLimits(300, 60, 300))  # row 6


async def test_thinking_is_life(autojump_clock: MockClock) -> None:
    await survives(f"{every(1, 'R', until=10)}; 11 P T", StallLimits(idle=2))  # row 7


@pytest.mark.parametrize("first_event", [0, 5])
async def test_unknown_event_types_are_life(autojump_clock: MockClock, first_event: float) -> None:
    await survives(f"{every(1, 'U', until=10)}; 11 P T", StallLimits(first_event, idle=2))  # row 8


async def test_a_consumer_that_stops_taking_makes_no_stall(autojump_clock: MockClock) -> None:
    upstream = Upstream("0 P; 1 P P T")  # row 9

    async with open_guarded(upstream, StallLimits(idle=5)) as events:
        assert await events.receive() == "P"
        await trio.sleep_until(30)

        assert await collect(events) == [(30, "P"), (30, "P"), (30, "T"), (30, "end")]
    assert upstream.events == [(0, "opened"), (1, "left")]


async def test_a_jump_of_the_wall_clock_changes_nothing(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 12 * 3600 * (trio.current_time() > 2))

    await survives("0 P; 5 P T", StallLimits(first_event=6, idle=6))  # row 10


async def test_progress_of_a_local_tool_is_life(autojump_clock: MockClock) -> None:
    await survives("0 P; 30 U; 60 U; 90 U; 120 U; 150 P T", StallLimits(idle=60))  # row 11


# Dead streams


async def test_a_creation_that_never_ends_stalls(autojump_clock: MockClock) -> None:
    upstream = Upstream("", creation=1000)  # row 12

    assert await observe(upstream, StallLimits(first_event=10)) == [(10, "stalled: creation")]
    assert upstream.events == [(10, "cancelled"), (10, "left")]


async def test_headers_without_a_byte_stall(autojump_clock: MockClock) -> None:
    upstream = Upstream("", creation=3)  # row 13

    assert await observe(upstream, StallLimits(first_event=10, idle=1)) == [(10, "stalled: first_event")]
    assert upstream.events == [(3, "opened"), (10, "cancelled"), (10, "left")]


@pytest.mark.parametrize("idle", [5, 0])
async def test_a_boundary_alone_leaves_the_first_window_in_force(autojump_clock: MockClock, idle: float) -> None:
    seen = await observe("0 S B", StallLimits(first_event=10, idle=idle))  # row 5

    assert seen == [(0, "S"), (0, "B"), (10, "stalled: first_event")]


async def test_life_before_the_first_content_extends_the_first_window(autojump_clock: MockClock) -> None:
    seen = await observe("8 B", StallLimits(first_event=10, idle=5))

    assert seen == [(8, "B"), (13, "stalled: idle")]


async def test_silence_after_content_stalls(autojump_clock: MockClock) -> None:
    seen = await observe("2 P; 3 B", StallLimits(first_event=300, idle=5))

    assert seen == [(2, "P"), (3, "B"), (8, "stalled: idle")]


async def test_keep_alive_bytes_before_the_first_content_end_with_the_first_window(autojump_clock: MockClock) -> None:
    seen = await observe(every(10, "c", until=1000), StallLimits(first_event=300, idle=30, keepalive_cap=120))

    assert seen == [(300, "stalled: first_event")]


async def test_they_end_at_the_cap_where_that_is_later(autojump_clock: MockClock) -> None:
    seen = await observe(every(10, "c", until=1000), StallLimits(first_event=100, idle=30, keepalive_cap=120))

    assert seen == [(120, "stalled: keepalive_only")]


async def test_an_event_starts_the_cap_anew(autojump_clock: MockClock) -> None:
    limits = StallLimits(idle=30, keepalive_cap=40)

    seen = await observe("0 P; 20 c; 35 B; 55 c; 74 c", limits)

    assert seen == [(0, "P"), (35, "B"), (75, "stalled: keepalive_only")]


async def test_the_cap_does_not_bind_a_stream_without_keep_alives(autojump_clock: MockClock) -> None:
    seen = await observe("0 P", StallLimits(idle=30, keepalive_cap=10))

    assert seen == [(0, "P"), (30, "stalled: idle")]


LIMITS = pytest.mark.parametrize("off", [0.0, inf])


@LIMITS
async def test_without_limits_nothing_ever_stalls(autojump_clock: MockClock, off: float) -> None:
    await survives("0 S; 1e6 c; 2e6 P; 4e6 T", StallLimits(off, off, off))


@LIMITS
async def test_without_an_idle_limit_silence_after_content_never_stalls(autojump_clock: MockClock, off: float) -> None:
    await survives("1 P; 1e6 T", StallLimits(first_event=10, idle=off))


@LIMITS
async def test_without_an_idle_limit_life_before_content_opens_the_first_window_anew(
    autojump_clock: MockClock, off: float
) -> None:
    await survives("8 U; 16 U; 24 P; 1e6 T", StallLimits(first_event=10, idle=off))

    seen = await observe("8 B", StallLimits(first_event=10, idle=off))

    assert seen == [(8, "B"), (18, "stalled: first_event")]


# The clock runs only while upstream is waited for


async def test_the_windows_do_not_move_while_nobody_waits(autojump_clock: MockClock) -> None:
    async with open_stall_guard(StallLimits(first_event=10, idle=5)) as guard:
        await trio.sleep(100)
        await guard.read(partial(trio.sleep, 4))
        guard.saw_bytes(1)
        await trio.sleep(100)
        await guard.read(partial(trio.sleep, 4))
        await trio.sleep(100)

        with pytest.raises(UpstreamStalledError):
            await guard.read(trio.sleep_forever)

    # 8 s of the first window were waited for before; the byte after 4 s is no reason to wait longer.
    assert trio.current_time() == 100 + 4 + 100 + 4 + 100 + 2


async def test_a_suspended_clock_stands_still(autojump_clock: MockClock) -> None:
    async with open_stall_guard(StallLimits(idle=5)) as guard:
        guard.saw_event(Sighting("tool_use", content=True, suspends=True))
        await guard.read(partial(trio.sleep, 1000))
        guard.saw_event(Sighting("tool_result"))
        await guard.read(partial(trio.sleep, 3))
        guard.suspend(while_silent=True)
        await guard.read(partial(trio.sleep, 1000))
        guard.suspend(while_silent=False)

        with pytest.raises(UpstreamStalledError):
            await guard.read(trio.sleep_forever)

    assert trio.current_time() == 1000 + 3 + 1000 + 2


async def test_it_can_be_suspended_and_resumed_in_the_middle_of_a_wait(autojump_clock: MockClock) -> None:
    async with open_stall_guard(StallLimits(first_event=5)) as guard:

        async def receive() -> None:
            await trio.sleep(2)
            guard.suspend(while_silent=True)
            await trio.sleep(1000)
            guard.suspend(while_silent=False)
            await trio.sleep_forever()

        with pytest.raises(UpstreamStalledError):
            await guard.read(receive)

    assert trio.current_time() == 1005


async def test_once_it_is_known_how_a_stream_ends_no_wait_is_too_long(autojump_clock: MockClock) -> None:
    async with open_stall_guard(StallLimits(first_event=5)) as guard:

        async def receive() -> str:
            await trio.sleep(2)
            guard.settle()
            await trio.sleep(1000)
            return "left"

        assert await guard.read(receive) == "left"

    assert trio.current_time() == 1002


# What a verdict says


async def test_a_verdict_says_what_it_rests_on(autojump_clock: MockClock) -> None:
    limits = StallLimits(300, 60, 100, idle_setting="IDLE", keepalive_cap_setting="CAP")

    async with open_stall_guard(limits) as guard:
        guard.saw_event(Sighting("text_delta", content=True, visible=True), count=3)
        await guard.read(partial(trio.sleep, 10))
        guard.saw_event(Sighting("toolcall_start", inside_tool_call=True))
        for _ in range(3):
            await guard.read(partial(trio.sleep, 30))
            guard.saw_bytes(7)
        with pytest.raises(UpstreamStalledError) as caught:
            await guard.read(trio.sleep_forever)

    assert trio.current_time() == 110
    assert caught.value.facts == StallFacts(
        phase="keepalive_only",
        limit=100,
        since_last_byte=10,
        since_last_event=100,
        last_event="toolcall_start",
        events=4,
        bytes=21,
        visible_output=True,
        setting="CAP",
        inside_tool_call=True,
    )


async def test_a_stall_inside_of_a_half_sent_tool_call_says_so(autojump_clock: MockClock) -> None:
    async with open_stall_guard(StallLimits(idle=5)) as guard:
        guard.saw_event(Sighting("tool_call_delta", content=True, inside_tool_call=True))

        with pytest.raises(UpstreamStalledError, match=r"silent for 5 s inside a half-sent tool call"):  # row 33
            await guard.read(trio.sleep_forever)


async def test_one_after_it_does_not(autojump_clock: MockClock) -> None:
    async with open_stall_guard(StallLimits(idle=5)) as guard:
        guard.saw_event(Sighting("tool_call_delta", content=True, inside_tool_call=True))
        guard.saw_event(Sighting("tool_call_end"))

        with pytest.raises(UpstreamStalledError) as caught:
            await guard.read(trio.sleep_forever)

    assert not caught.value.facts.inside_tool_call


@pytest.mark.parametrize(
    ("sequence", "phase", "setting", "limit"),
    [
        (None, "creation", "FIRST", 20),
        ("", "first_event", "FIRST", 20),
        ("1 B", "first_event", "FIRST", 20),
        ("19 B", "idle", "IDLE", 10),
        ("1 P", "idle", "IDLE", 10),
        (f"1 P; {every(8, 'c', until=80)}", "keepalive_only", "CAP", 30),
    ],
)
async def test_a_verdict_names_the_setting_that_raises_its_limit(
    autojump_clock: MockClock, sequence: str | None, phase: str, setting: str, limit: float
) -> None:
    upstream = Upstream(sequence or "", creation=1000 if sequence is None else 0)

    async with open_guarded(upstream, StallLimits(20, 10, 30, "FIRST", "IDLE", "CAP")) as events:
        with pytest.raises(UpstreamStalledError, match=f"{setting} raises this limit") as caught:
            async for _ in events:
                pass

    facts = caught.value.facts
    assert (facts.phase, facts.setting, facts.limit) == (phase, setting, limit)


@pytest.mark.parametrize(("cap", "setting"), [(10, "IDLE"), (30, "CAP")])
async def test_a_cap_below_the_idle_limit_is_raised_to_it(autojump_clock: MockClock, cap: float, setting: str) -> None:
    limits = StallLimits(idle=30, keepalive_cap=cap, idle_setting="IDLE", keepalive_cap_setting="CAP")

    async with open_stall_guard(limits) as guard:
        guard.saw_event(Sighting("delta", content=True))
        await guard.read(partial(trio.sleep, 20))
        guard.saw_bytes(1)
        with pytest.raises(UpstreamStalledError) as caught:
            await guard.read(trio.sleep_forever)

    assert trio.current_time() == 30
    facts = caught.value.facts
    assert (facts.phase, facts.setting, facts.limit) == ("keepalive_only", setting, 30)


@pytest.mark.parametrize("first", [121, 500])
async def test_a_byte_after_a_silence_as_long_as_the_cap_ends_nothing(autojump_clock: MockClock, first: int) -> None:
    sequence = f"0 c; 1 P; {every(10, 'c', since=first - 10, until=2000)}"

    seen = await observe(sequence, StallLimits(keepalive_cap=120))

    assert seen == [(1, "P"), (first + 120, "stalled: keepalive_only")]


@pytest.mark.parametrize("seconds", [-1, float("nan")])
@pytest.mark.parametrize("name", ["first_event", "idle", "keepalive_cap"])
def test_a_limit_that_is_no_time_span_is_refused(name: str, seconds: float) -> None:
    limits: dict[str, Any] = {name: seconds}

    with pytest.raises(ValueError, match=f"^{name}={seconds}: must be 0 or more seconds$"):
        StallLimits(**limits)


def test_all_limits_are_off_unless_given_and_named_after_themselves() -> None:
    assert StallLimits() == StallLimits(0, 0, 0) == StallLimits(inf, inf, inf, "first_event", "idle", "keepalive_cap")


@pytest.mark.parametrize("name", ["first_event", "idle", "keepalive_cap"])
def test_one_limit_is_enough_to_have_any(name: str) -> None:
    limits: dict[str, Any] = {name: 5}

    assert StallLimits(**limits).any
    assert not StallLimits().any
