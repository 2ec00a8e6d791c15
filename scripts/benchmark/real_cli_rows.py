"""Measure what the real CLI takes from a request to its call of the API: cold, warm, continued, in turn in one run."""

import json
import os
import resource
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import trio

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))

import real_cli
from mock_anthropic import MockAnthropic, open_mock_anthropic
from sse_script import Answer, Arguments
from sse_script import ToolUse as Call

from ocp_trio.claude import ClaudeBackend, open_claude
from ocp_trio.completion import CompletionRequest, Message, Text, TextDelta, Tool, ToolCallStart, ToolResult, ToolUse

__all__ = ["measure_real_cli"]

MODEL = "claude-sonnet-5-5"
SETTLE = 3.0
"""Seconds of rest before each measurement, so that children started ahead have come up."""
PASSED = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")
TOOL = Tool("look", "Look something up.", {"type": "object", "properties": {"at": {"type": "string"}}})
TARGETS = {"cold": "", "warm": "0.15, cold >= 3 x", "continued": "0.06", "tool result": "0.06"}
TICKS = os.sysconf("SC_CLK_TCK")


class Sample(NamedTuple):
    """Seconds until the API had a request, and processor seconds that were used until its answer had ended."""

    seconds: float
    cpu: float


Ask = Callable[[int], Awaitable[float]]


def _user(text: str) -> Message:
    return Message("user", (Text(text),))


def _cpu() -> float:
    """Return the processor seconds of this process, of its children, and of those that have ended."""
    used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / TICKS
    return used


async def _ask(
    backend: ClaudeBackend, mock: MockAnthropic, *messages: Message, marker: str, tools: tuple[Tool, ...] = ()
) -> tuple[float, str]:
    """Return the seconds until the API had the request that ``marker`` stands last in, and the text or call id."""
    began, answer = trio.current_time(), ""
    request = CompletionRequest(model=MODEL, messages=messages, system="You are terse.", max_tokens=2000, tools=tools)
    async with backend.stream(request) as batches:
        async for batch in batches:
            answer += "".join(event.text for event in batch if isinstance(event, TextDelta))
            answer += "".join(event.id for event in batch if isinstance(event, ToolCallStart))
    received = next(seen.received for seen in reversed(mock.requests) if marker in json.dumps(seen.body["messages"]))
    return received - began, answer


async def _at_once(count: int, ask: Ask) -> list[Sample]:
    times: list[float] = []

    async def one(number: int) -> None:
        times.append(await ask(number))

    before = _cpu()
    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    used = (_cpu() - before) / count
    return [Sample(seconds, used) for seconds in times]


@asynccontextmanager
async def _open(url: str, home: str, warm: int) -> AsyncIterator[ClaudeBackend]:
    binary = real_cli.find()
    if binary is None:
        sys.exit("bench: the real CLI is not installed: python tests/real_cli.py install")
    environment = real_cli.environment(Path(home), url)
    async with open_claude(
        str(binary),
        environment=environment,
        pass_environment=[*PASSED, *environment],
        warm_pool=warm,
        warm_conversations=2 * warm,
    ) as backend:
        yield backend


class _Run:
    """One round of measurements, of ``count`` requests at once each.

    Args:
        turn: Makes what is asked unlike anything asked before.
    """

    def __init__(self, mock: MockAnthropic, cold: ClaudeBackend, warm: ClaudeBackend, turn: str) -> None:
        self._mock = mock
        self._cold = cold
        self._warm = warm
        self._turn = turn
        self._answers: dict[int, str] = {}

    async def cold(self, number: int) -> float:
        marker = f"cold {self._turn}.{number}."
        return (await _ask(self._cold, self._mock, _user(marker), marker=marker))[0]

    async def warm(self, number: int) -> float:
        marker = f"warm {self._turn}.{number}."
        seconds, self._answers[number] = await _ask(self._warm, self._mock, _user(marker), marker=marker)
        return seconds

    async def continued(self, number: int) -> float:
        marker = f"continued {self._turn}.{number}."
        said = (_user(f"warm {self._turn}.{number}."), Message("assistant", (Text(self._answers[number]),)))
        return (await _ask(self._warm, self._mock, *said, _user(marker), marker=marker))[0]

    async def call(self, number: int) -> float:
        marker = f"tool {self._turn}.{number}."
        made = Answer(Call(self._call(number), "mcp__client__look"), Arguments('{"at":"it"}'), stop_reason="tool_use")
        self._mock.script(made, on=marker)
        return (await _ask(self._warm, self._mock, _user(marker), marker=marker, tools=(TOOL,)))[0]

    async def tool_result(self, number: int) -> float:
        call, marker = self._call(number), f"result {self._turn}.{number}."
        made = Message("assistant", (ToolUse(call, "look", {"at": "it"}),))
        found = Message("user", (ToolResult(call, (Text(marker),)),))
        said = (_user(f"tool {self._turn}.{number}."), made, found)
        return (await _ask(self._warm, self._mock, *said, marker=marker, tools=(TOOL,)))[0]

    def _call(self, number: int) -> str:
        return f"toolu_{self._turn}_{number}"


async def _measure(repeat: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ocp-bench-") as home:
        async with open_mock_anthropic() as mock:
            print(f"{'from a request to the API, p50':32}{'s':>8}{'CPU s':>8}{'of cold':>9}  target")
            for count in (1, 8):
                async with _open(mock.url, home, 0) as cold, _open(mock.url, home, count) as warm:
                    await _rows(count, cold, warm, mock, repeat)


async def _rows(count: int, cold: ClaudeBackend, warm: ClaudeBackend, mock: MockAnthropic, repeat: int) -> None:
    samples: dict[str, list[Sample]] = defaultdict(list)
    pause = SETTLE * (1 + count / 4)
    for turn in range(repeat):
        run = _Run(mock, cold, warm, f"{count}_{turn}")
        await trio.sleep(pause)
        samples["warm"] += await _at_once(count, run.warm)
        samples["continued"] += await _at_once(count, run.continued)
        await trio.sleep(pause)
        samples["cold"] += await _at_once(count, run.cold)
        await trio.sleep(pause)
        await _at_once(count, run.call)
        samples["tool result"] += await _at_once(count, run.tool_result)
    middle = {name: Sample(*map(statistics.median, zip(*samples[name], strict=True))) for name in TARGETS}
    for name, target in TARGETS.items():
        seconds, cpu = middle[name]
        share = seconds / middle["cold"].seconds
        wanted = f"<= {target}" if target and count == 1 else ""
        print(f"{name + f', {count} at once':32}{seconds:8.3f}{cpu:8.3f}{share:9.2f}  {wanted}", flush=True)


def measure_real_cli(repeat: int) -> None:
    """Print the medians of ``repeat`` runs, for one request and for eight at once."""
    trio.run(_measure, repeat)
