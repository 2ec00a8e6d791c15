"""The guard decides as plain arithmetic on times does, over random sequences and windows."""

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import NamedTuple

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from ocp_trio.errors import UpstreamStalledError
from ocp_trio.streaming import FINISH_GRACE, Sighting, StallGuard, StallLimits, open_stall_guard

AT_ONCE = 32
"""Sequences that are played in one run, to spare its start."""
EVENTS = {
    "content": Sighting("content", content=True),
    "boundary": Sighting("boundary"),
    "finish": Sighting("finish", finish=True),
}


class Step(NamedTuple):
    """Wait for upstream until something comes (bytes, an event, a local start), then be busy with it."""

    wait: float
    kind: str
    busy: float


class Play(NamedTuple):
    """A sequence and the windows that it meets."""

    limits: StallLimits
    steps: list[Step]


class Verdict(NamedTuple):
    """When and why a stream was given up."""

    at: float
    phase: str
    limit: float


def arithmetic(limits: StallLimits, steps: list[Step]) -> Verdict | None:
    """Say how a sequence ends, by times alone; ``clock`` shows only time that was spent waiting."""
    first, idle, cap = limits.first_event, limits.idle, limits.keepalive_cap
    clock = busy = since = 0.0
    life = finish = None
    content = eventless = False
    for wait, kind, then in [*steps, Step(inf, "silence", 0)]:
        gap, phase = (idle, "idle") if content or idle < inf else (first, "first_event")
        reach = cap if gap == inf else max(cap, gap)
        ends = [Verdict(-inf if life is None else life + gap, phase, gap)]
        ends += [Verdict(since + reach, "keepalive_only", reach)] if eventless else []
        end = min(ends, key=lambda verdict: verdict.at)
        end = end if content else max(Verdict(first, "first_event", first), end, key=lambda verdict: verdict.at)
        end = end if finish is None else Verdict(finish + FINISH_GRACE, "finished", FINISH_GRACE)
        if clock + wait > end.at:
            return end._replace(at=end.at + busy)
        clock, busy = clock + wait, busy + then
        if kind in EVENTS or (kind == "bytes" and not eventless and clock >= since + reach):
            since = clock
        eventless = kind == "bytes" or (eventless and kind not in EVENTS)
        life = clock if kind in {*EVENTS, "bytes"} else life
        content = content or kind == "content"
        finish = clock if kind == "finish" and finish is None else finish
    return None


def reads(steps: list[Step], *, merged: bool) -> Iterator[list[Step]]:
    """Yield the steps of each read: one, or also the bytes before it that keep nobody busy."""
    read: list[Step] = []
    for step in steps:
        read.append(step)
        if not (merged and step.kind == "bytes" and not step.busy):
            yield read
            read = []
    if read:
        yield read


async def receive(guard: StallGuard, steps: list[Step]) -> None:
    for step in steps:
        await trio.sleep(step.wait)
        if step.kind == "bytes":
            guard.saw_bytes(1)
        elif step.kind in EVENTS:
            guard.saw_event(EVENTS[step.kind])


async def guarded(played: Play, *, merged: bool) -> Verdict | None:
    """Say how a sequence ends under a real guard."""
    async with open_stall_guard(played.limits) as guard:
        guard.created()
        try:
            for steps in reads(played.steps, merged=merged):
                await guard.read(partial(receive, guard, steps))
                await trio.sleep(steps[-1].busy)
            with trio.move_on_after(1e9):
                await guard.read(trio.sleep_forever)
        except UpstreamStalledError as error:
            return Verdict(trio.current_time(), error.facts.phase, error.facts.limit)
        except trio.EndOfChannel:
            return Verdict(trio.current_time(), "finished", FINISH_GRACE)
    return None


def half(number: int) -> float:
    """Return a time; halves are exact, so that times are compared as they are."""
    return number % 25 / 2


def play(data: bytes) -> Play:
    """Return what some bytes stand for; Hypothesis makes bytes a hundred times as fast as it makes steps."""
    first, idle, cap = (half(number) if number >= 32 else 0 for number in data[:3])
    rest = data[3:]
    kinds = ["bytes", "bytes", "local", "boundary", "content", "content", "bytes", "finish"]
    steps = [
        Step(half(wait), kinds[kind % len(kinds)], half(busy) if kind >= 128 else 0)
        for wait, kind, busy in zip(rest[::3], rest[1::3], rest[2::3], strict=False)
    ]
    return Play(StallLimits(first, idle, cap), steps)


@settings(max_examples=65)
@given(
    plays=st.lists(st.binary(min_size=3, max_size=39).map(play), min_size=AT_ONCE, max_size=AT_ONCE),
    merged=st.booleans(),
)
def test_verdict_time_and_phase_are_those_of_the_arithmetic(plays: list[Play], merged: bool) -> None:
    verdicts: dict[int, Verdict | None] = {}

    async def run(number: int, played: Play) -> None:
        verdicts[number] = await guarded(played, merged=merged)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number, played in enumerate(plays):
                nursery.start_soon(run, number, played)

    trio.run(main, clock=MockClock(autojump_threshold=0))

    assert verdicts == {number: arithmetic(*played) for number, played in enumerate(plays)}
