"""Measure what the real CLI takes from a request to its call of the API: cold, warm, continued, in turn in one run."""

import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "tests"))

import real_cli
from mock_anthropic import MockAnthropic, open_mock_anthropic

from ocp_trio.claude import ClaudeBackend, open_claude
from ocp_trio.completion import CompletionRequest, Message, Text, TextDelta

__all__ = ["measure_real_cli"]

MODEL = "claude-sonnet-5-5"
SETTLE = 3.0
"""Seconds of rest before each measurement, so that children started ahead have come up."""
PASSED = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")

Ask = Callable[[int], Awaitable[float]]


def _user(text: str) -> Message:
    return Message("user", (Text(text),))


async def _ask(backend: ClaudeBackend, mock: MockAnthropic, *messages: Message) -> tuple[float, str]:
    """Return the seconds until the API had the request, and the answer."""
    last = messages[-1].parts[0]
    assert isinstance(last, Text)
    began, answer = trio.current_time(), ""
    request = CompletionRequest(model=MODEL, messages=messages, system="You are terse.", max_tokens=2000)
    async with backend.stream(request) as batches:
        async for batch in batches:
            answer += "".join(event.text for event in batch if isinstance(event, TextDelta))
    received = next(seen.received for seen in reversed(mock.requests) if last.text in seen.last_user_text)
    return received - began, answer


async def _at_once(count: int, ask: Ask) -> list[float]:
    times: list[float] = []

    async def one(number: int) -> None:
        times.append(await ask(number))

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return times


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
        warm_conversations=warm,
    ) as backend:
        yield backend


async def _measure(repeat: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ocp-bench-") as home:
        async with open_mock_anthropic() as mock:
            print(f"{'requests at once':18}{'cold s':>9}{'warm s':>9}{'ratio':>7}{'continued s':>13}")
            for count in (1, 8):
                async with _open(mock.url, home, 0) as cold, _open(mock.url, home, count) as warm:
                    await _row(count, cold, warm, mock, repeat)


async def _row(count: int, cold: ClaudeBackend, warm: ClaudeBackend, mock: MockAnthropic, repeat: int) -> None:
    times: dict[str, list[float]] = {"cold": [], "warm": [], "continued": []}
    for turn in range(repeat):
        answers: dict[int, str] = {}

        async def first(number: int, turn: int = turn, answers: dict[int, str] = answers) -> float:
            seconds, answers[number] = await _ask(warm, mock, _user(f"warm {turn}.{number}"))
            return seconds

        async def second(number: int, turn: int = turn, answers: dict[int, str] = answers) -> float:
            history = (_user(f"warm {turn}.{number}"), Message("assistant", (Text(answers[number]),)))
            return (await _ask(warm, mock, *history, _user(f"continued {turn}.{number}")))[0]

        async def fresh(number: int, turn: int = turn) -> float:
            return (await _ask(cold, mock, _user(f"cold {turn}.{number}")))[0]

        await trio.sleep(SETTLE * (1 + count / 4))
        times["warm"] += await _at_once(count, first)
        times["continued"] += await _at_once(count, second)
        await trio.sleep(SETTLE * (1 + count / 4))
        times["cold"] += await _at_once(count, fresh)
    middle = {name: statistics.median(each) for name, each in times.items()}
    ratio = middle["cold"] / middle["warm"]
    print(f"{count:<18}{middle['cold']:9.3f}{middle['warm']:9.3f}{ratio:7.1f}{middle['continued']:13.3f}", flush=True)


def measure_real_cli(repeat: int) -> None:
    """Print the medians of ``repeat`` runs, for one request and for eight at once."""
    trio.run(_measure, repeat)
