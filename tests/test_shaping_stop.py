"""An answer, and the work for it, ends at the first stop sequence."""

import pytest
from trio.testing import MockClock

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    Message,
    Text,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ToolCallStart,
    Usage,
)
from ocp_trio.errors import UpstreamError
from ocp_trio.shaping import end_at_stops
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

REQUEST = CompletionRequest(model="m", messages=(Message("user", (Text("hi"),)),))
USAGE = Usage(input=10, output=5)
DONE = Completed("stop", USAGE)
ERROR = UpstreamError("broken")


async def ended(*script: Step, stops: tuple[str, ...] = ("END",)) -> list[Batch]:
    """Return the batches of an answer, without the first."""
    backend = ScriptedBackend(script)
    async with end_at_stops(backend.stream, stops)(REQUEST) as batches:
        seen = [batch async for batch in batches]
    assert backend.running == 0
    return seen[1:]


@pytest.mark.parametrize(
    ("script", "seen"),
    [
        ([(TextDelta("a END b"), DONE)], [(TextDelta("a "), DONE)]),
        ([(TextDelta("a E"),), (TextDelta("ND b"), DONE)], [(TextDelta("a "),), (DONE,)]),
        ([(TextDelta("a E"), TextDelta("ND")), (DONE,)], [(TextDelta("a "), Completed("stop"))]),
        ([(TextDelta("a E"),), (DONE,)], [(TextDelta("a "),), (TextDelta("E"), DONE)]),
        ([(TextDelta("a E"),), (Failed(ERROR),)], [(TextDelta("a "),), (TextDelta("E"), Failed(ERROR))]),
        ([(TextDelta("E"), TextEnd(), TextDelta("ND")), (DONE,)], [(TextEnd(), Completed("stop"))]),
        ([(ThinkingDelta("END"), TextDelta("a")), (DONE,)], [(ThinkingDelta("END"), TextDelta("a")), (DONE,)]),
        ([(TextDelta("aE"), ToolCallStart(0, "1", "f")), (DONE,)],
         [(TextDelta("a"), TextDelta("E"), ToolCallStart(0, "1", "f")), (DONE,)]),
        ([(), (Activity("ping"),), (DONE,)], [(), (Activity("ping"),), (DONE,)]),
    ],
    ids=[
        "in one delta", "across batches", "across deltas", "never", "before an error", "across blocks", "in reasoning",
        "before a call", "without text",
    ],
)  # fmt: skip
async def test_what_comes_before_it_is_said(script: list[Step], seen: list[Batch]) -> None:
    assert await ended(*script) == seen


@pytest.mark.parametrize(
    ("batch", "usage"),
    [
        ((TextDelta("END"),), Usage(input=10, output=1)),
        ((TextDelta("END"), Activity("message_delta", USAGE)), USAGE),
        ((TextDelta("END"), DONE), USAGE),
    ],
)
async def test_its_usage_is_what_upstream_has_told_by_then(batch: tuple[Event, ...], usage: Usage) -> None:
    seen = await ended((Activity("message_start", Usage(input=10, output=1)), TextDelta("a")), batch)

    assert seen[-1] == (Completed("stop", usage),)


async def test_upstream_is_ended_when_it_is_left(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([(TextDelta("a END"),), 1e6, (DONE,)])

    async with end_at_stops(backend.stream, ["END"])(REQUEST) as batches:
        seen = [batch async for batch in batches]
        assert backend.running == 1

    assert seen[1:] == [(TextDelta("a "), Completed("stop"))]
    assert backend.running == 0


async def test_an_error_before_the_first_batch_leaves_it() -> None:
    backend = ScriptedBackend([], refuse=ERROR)

    with pytest.raises(UpstreamError):
        async with end_at_stops(backend.stream, ["END"])(REQUEST):
            pass
