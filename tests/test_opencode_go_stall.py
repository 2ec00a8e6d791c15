"""OpenCode Go's live streams are never killed; its dead ones always end with one clear error, in both flavours."""

import time

import pytest
import trio
from mock_opencode import Bytes
from opencode_sequences import Go, ask, both_flavours, collect, open_go, script, told
from sse_script import Raw, Sleep, Wait
from trio.testing import MockClock
from upstream import Timeline, parse

from ocp_trio.completion import Completed, Event, Failed, ToolCallEnd, Usage
from ocp_trio.errors import UpstreamStalledError

RUNS = 50
"""Trio reverses the order of the tasks that become runnable in one instant, or not, by chance."""


def every(seconds: int, item: str, *, until: int, since: int = 0) -> str:
    """Return a sequence of ``item`` each so many seconds, first so many after ``since``."""
    return "; ".join(f"{at} {item}" for at in range(since + seconds, until + 1, seconds))


async def seen(sequence: str, model: str, first: float = 1e9, idle: float = 1e9, cap: float = 1e9) -> Timeline:
    async with open_go(first, idle, cap) as go:
        return await go.observe(sequence, model)


async def survives(sequence: str, model: str, first: float = 1e9, idle: float = 1e9, cap: float = 1e9) -> None:
    """Check that a sequence arrives whole, each item in its time, and that its end is the only one."""
    expected = [(at, item) for at, item in parse(sequence) if item != "c"]

    assert await seen(sequence, model, first, idle, cap) == expected


# Live streams


@both_flavours
async def test_boundaries_are_life_and_the_done_after_them_is_delivered(autojump_clock: MockClock, model: str) -> None:
    await survives("0 S P; 3 B; 6 U; 7 T", model, idle=5)  # row 1


@both_flavours
async def test_deliberation_between_two_tool_calls_may_take_any_time(autojump_clock: MockClock, model: str) -> None:
    await survives("0 S B A; 1 U; 101 U; 201 U; 301 U; 401 U; 410 P; 411 T", model, idle=120)  # row 2


@both_flavours
async def test_a_local_start_does_not_start_the_short_window(autojump_clock: MockClock, model: str) -> None:
    await survives("0 S; 6 P; 7 T", model, first=10, idle=5)  # row 3


@both_flavours
async def test_a_boundary_before_the_first_content_does_not_shorten_the_first_window(
    autojump_clock: MockClock, model: str
) -> None:
    await survives("0 S; 1 B; 6 P; 7 T", model, first=10, idle=5)  # row 4


@both_flavours
async def test_bytes_keep_the_idle_window_open(autojump_clock: MockClock, model: str) -> None:
    content = "; ".join(f"{number} P" for number in range(8))
    sequence = f"0 S; {content}; {every(15, 'c', since=1, until=91)}; 91.4 P T"

    await survives(sequence, model, 300, 60, 300)  # row 6


@both_flavours
async def test_thinking_is_life(autojump_clock: MockClock, model: str) -> None:
    await survives(f"0 S; {every(1, 'R', until=10)}; 11 P T", model, idle=2)  # row 7


@both_flavours
@pytest.mark.parametrize("first", [0, 5])
async def test_unknown_event_types_are_life(autojump_clock: MockClock, model: str, first: float) -> None:
    await survives(f"0 S; {every(1, 'U', until=10)}; 11 P T", model, first, idle=2)  # row 8


@both_flavours
async def test_a_consumer_that_stops_taking_makes_no_stall(autojump_clock: MockClock, model: str) -> None:
    async with open_go(idle=5) as go, go.open("0 P; 1 P P T", model) as batches:
        assert [told(await anext(batches)) for _ in "SP"] == [["S"], ["P"]]
        await trio.sleep_until(30)  # row 9

        assert await collect(batches) == [(30, "P"), (30, "P"), (30, "T")]


@both_flavours
async def test_a_jump_of_the_wall_clock_changes_nothing(
    autojump_clock: MockClock, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 12 * 3600 * (trio.current_time() > 2))

    await survives("0 S P; 5 P T", model, 6, 6)  # row 10


# Dead streams


@both_flavours
async def test_a_connection_that_is_never_made_stalls(autojump_clock: MockClock, model: str) -> None:
    async with open_go(first=10) as go:
        go.provider.connecting = 1e9

        assert await ask(go.backend, model) == [(10, "stalled: creation")]  # row 12


@both_flavours
async def test_so_do_headers_that_never_come_and_upstream_is_left(autojump_clock: MockClock, model: str) -> None:
    async with open_go(first=10) as go:
        go.provider.script(Bytes(before_headers=(Wait(trio.Event()),)))

        assert await ask(go.backend, model) == [(10, "stalled: creation")]  # row 12
        assert go.provider.requests[0].closed.is_set()


@both_flavours
async def test_headers_without_a_byte_stall(autojump_clock: MockClock, model: str) -> None:
    assert await seen("", model, 10, 1) == [(0, "S"), (10, "stalled: first_event")]  # row 13


@both_flavours
async def test_a_boundary_alone_leaves_the_first_window_in_force(autojump_clock: MockClock, model: str) -> None:
    assert await seen("1 B", model, 10, 5) == [(0, "S"), (1, "B"), (10, "stalled: first_event")]  # row 5


@both_flavours
async def test_silence_after_content_stalls_and_upstream_is_left(autojump_clock: MockClock, model: str) -> None:
    async with open_go(300, 5) as go:
        assert await go.observe("2 P; 3 B", model) == [(0, "S"), (2, "P"), (3, "B"), (8, "stalled: idle")]
        assert go.provider.requests[0].closed.is_set()


@both_flavours
async def test_keep_alives_for_ever_end_at_their_cap(autojump_clock: MockClock, model: str) -> None:
    sequence = f"0 P; {every(10, 'c', until=1000)}"

    assert await seen(sequence, model, idle=30, cap=120) == [
        (0, "S"),
        (0, "P"),
        (120, "stalled: keepalive_only"),
    ]  # row 14


@both_flavours
async def test_single_bytes_of_a_comment_keep_the_window_open_too(autojump_clock: MockClock, model: str) -> None:
    drip = [step for _ in range(100) for step in (Sleep(4), Raw(b":"))]
    async with open_go(idle=5, cap=20) as go:
        go.provider.script(Bytes(*script("0 P", model).steps[:1], *drip))

        assert await ask(go.backend, model) == [(0, "S"), (0, "P"), (20, "stalled: keepalive_only")]


@both_flavours
async def test_the_death_of_upstream_is_noticed_while_nobody_reads(
    autojump_clock: MockClock, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ocp_trio.opencode_go")
    async with open_go(idle=10) as go, go.open("0 P; 2 fails", model) as batches:
        assert [told(await anext(batches)) for _ in "SP"] == [["S"], ["P"]]
        await trio.sleep_until(3)  # row 16
        assert [record.message for record in caplog.records] == ["upstream_broke"]
        await trio.sleep_until(60)

        assert await collect(batches) == [(60, "UpstreamIncompleteError")]


@both_flavours
async def test_so_is_its_silence(autojump_clock: MockClock, model: str) -> None:
    async with open_go(idle=10) as go, go.open("0 P", model) as batches:
        assert [told(await anext(batches)) for _ in "SP"] == [["S"], ["P"]]
        await go.provider.requests[0].closed.wait()
        assert trio.current_time() == 10
        await trio.sleep_until(60)

        assert await collect(batches) == [(60, "stalled: idle")]


# Ends


async def last_event(go: Go, sequence: str, model: str) -> tuple[float, object]:
    """Return the last event of a sequence, and when it came."""
    last: object = None
    async with go.open(sequence, model) as batches:
        async for batch in batches:
            last = batch[-1]
        return trio.current_time(), last


@both_flavours
async def test_an_answer_that_is_finished_is_complete_two_seconds_later(autojump_clock: MockClock, model: str) -> None:
    async with open_go(idle=1) as go:
        end = await last_event(go, "0 P F; 0.01 N", model)  # row 18

    assert end == (2, Completed("stop", Usage(input=10, output=5)))
    assert go.provider.requests[0].closed.is_set()


@both_flavours
async def test_one_that_is_done_is_complete_at_once_and_its_body_is_closed(
    autojump_clock: MockClock, model: str
) -> None:
    async with open_go(idle=5) as go:
        end = await last_event(go, "0 P T", model)  # row 19
        await go.provider.requests[0].closed.wait()

    assert end == (0, Completed("stop", Usage(input=10, output=5)))
    assert trio.current_time() == 0.1


@both_flavours
@pytest.mark.parametrize("end", ["end", "fails"])
async def test_after_a_finish_any_end_of_the_stream_is_a_good_one(
    autojump_clock: MockClock, model: str, end: str
) -> None:
    assert await seen(f"0 P F; 1 {end}", model, idle=5) == [(0, "S"), (0, "P"), (1, "T")]


@both_flavours
async def test_a_done_after_the_verdict_changes_nothing(autojump_clock: MockClock, model: str) -> None:
    assert await seen("0 P; 5.001 T", model, idle=5) == [(0, "S"), (0, "P"), (5, "stalled: idle")]  # row 24


@both_flavours
@pytest.mark.parametrize("item", ["T", "P T", "c P T"])
async def test_what_can_be_read_at_the_very_deadline_wins(autojump_clock: MockClock, model: str, item: str) -> None:
    outcomes = set()
    async with open_go(idle=5) as go:
        for _ in range(RUNS):
            outcomes.add(tuple(await go.observe(f"0 P; 5 {item}", model)))  # row 25

    middle = [(5, "P")] if "P" in item else []
    assert outcomes == {((0, "S"), (0, "P"), *middle, (5, "T"))}


@both_flavours
async def test_a_done_that_a_slow_consumer_takes_after_the_deadline_is_the_end(
    autojump_clock: MockClock, model: str
) -> None:
    async with open_go(idle=5) as go, go.open("0 P; 4 T", model) as batches:
        await trio.sleep_until(100)  # row 26

        assert await collect(batches) == [(100, "S"), (100, "P"), (100, "T")]


@both_flavours
@pytest.mark.parametrize("sequence", ["1 E; 2 T", "1 E T", "1 E E"])
async def test_an_error_is_the_only_end(autojump_clock: MockClock, model: str, sequence: str) -> None:
    assert await seen(f"0 P; {sequence}", model, idle=5) == [
        (0, "S"),
        (0, "P"),
        (1, "UpstreamOverloadedError"),
    ]  # row 27


@both_flavours
@pytest.mark.parametrize("sequence", ["1 T T", "1 T; 1 P", "1 T D; 2 E"])
async def test_so_is_a_done(autojump_clock: MockClock, model: str, sequence: str) -> None:
    assert await seen(f"0 P; {sequence}", model, idle=5) == [(0, "S"), (0, "P"), (1, "T")]  # row 28


@both_flavours
@pytest.mark.parametrize("end", ["end", "fails"])
async def test_the_end_of_a_stream_without_a_finish_is_never_success(
    autojump_clock: MockClock, model: str, end: str
) -> None:
    assert await seen(f"0 P; 1 {end}", model, idle=5) == [
        (0, "S"),
        (0, "P"),
        (1, "UpstreamIncompleteError"),
    ]  # row 29


@both_flavours
@pytest.mark.parametrize(("item", "end"), [("P", "T"), ("R", "UpstreamIncompleteError")])
async def test_a_mark_of_the_end_alone_completes_visible_text_only(
    autojump_clock: MockClock, model: str, item: str, end: str
) -> None:
    assert await seen(f"0 {item} D", model, idle=5) == [(0, "S"), (0, item), (0, end)]  # row 30


@both_flavours
async def test_a_stall_inside_of_a_half_sent_tool_call_says_so(autojump_clock: MockClock, model: str) -> None:
    events: list[Event] = []
    async with open_go(idle=5) as go, go.open("0 B A", model) as batches:  # row 33
        async for batch in batches:
            events += batch

    failed = events.pop()
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UpstreamStalledError)
    assert "inside a half-sent tool call" in str(failed.error)
    assert not any(isinstance(event, ToolCallEnd) for event in events)


# Cancellation


@both_flavours
async def test_a_consumer_that_leaves_ends_upstream_at_once(autojump_clock: MockClock, model: str) -> None:
    async with open_go(idle=300) as go:
        async with go.open("0 P; 300 T", model) as batches:  # row 32
            assert [told(await anext(batches)) for _ in "SP"] == [["S"], ["P"]]
            await trio.sleep_until(1)
        assert trio.current_time() == 1

        await go.provider.requests[0].closed.wait()
        assert trio.current_time() == 1
        assert go.backend.state.in_flight == 0


@both_flavours
async def test_cancellation_is_never_told_as_an_error_of_upstream(autojump_clock: MockClock, model: str) -> None:
    async with open_go(idle=5) as go:
        for _ in range(RUNS):
            with trio.move_on_after(1) as leaving:
                async with go.open("0 P; 1 fails", model) as batches:  # row 31
                    assert [told(await anext(batches)) for _ in "SP"] == [["S"], ["P"]]
                    await trio.sleep_forever()

            assert leaving.cancelled_caught


# What a verdict says


@both_flavours
@pytest.mark.parametrize(
    ("sequence", "phase", "setting", "limit"),
    [
        (None, "creation", "OPENCODE_GO_FIRST_EVENT_TIMEOUT", 20),
        ("", "first_event", "OPENCODE_GO_FIRST_EVENT_TIMEOUT", 20),
        ("1 P", "idle", "OPENCODE_GO_IDLE_TIMEOUT", 10),
        (f"1 P; {every(8, 'c', until=80)}", "keepalive_only", "OPENCODE_GO_KEEPALIVE_CAP", 30),
    ],
)
async def test_a_verdict_names_the_setting_that_raises_its_limit(  # noqa: PLR0917 (pytest's)
    autojump_clock: MockClock, model: str, sequence: str | None, phase: str, setting: str, limit: float
) -> None:
    error: object = None
    async with open_go(20, 10, 30) as go:
        go.provider.connecting = 1e9 if sequence is None else 0
        try:
            _, last = await last_event(go, sequence or "", model)
            error = last.error if isinstance(last, Failed) else None
        except UpstreamStalledError as early:
            error = early

    assert isinstance(error, UpstreamStalledError)
    assert (error.facts.phase, error.facts.setting, error.facts.limit) == (phase, setting, limit)


@both_flavours
async def test_a_verdict_counts_events_and_bytes(autojump_clock: MockClock, model: str) -> None:
    async with open_go(idle=5) as go:
        _, failed = await last_event(go, "0 P P P; 1 P; 2 c", model)

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, UpstreamStalledError)
    facts = failed.error.facts
    assert (facts.events, facts.last_event, facts.visible_output) == (4, "TextDelta", True)
    assert (facts.since_last_byte, facts.since_last_event) == (5, 6)
    assert facts.bytes > 100


async def test_limits_that_are_changed_hold_for_the_next_answer(autojump_clock: MockClock) -> None:
    async with open_go(1e9, 1e9, 1e9) as go:
        go.backend.tune(first_event_timeout=1e9, idle_timeout=5, keepalive_cap=1e9)
        timeline = await go.observe("0 S P; 60 T", "kimi-k2.6")

    assert timeline[-1][0] == 5
