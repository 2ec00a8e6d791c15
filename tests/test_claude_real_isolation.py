"""What reaches the API through children that wait is a request's own, whoever asked before: with the real CLI."""

import json
import random
from pathlib import Path

import pytest
from fake_backend import words
from real_backend import Json, RealBackend, assistant, open_real, request, said, user
from sse_script import Answer, Text

from ocp_trio.completion import CompletionRequest, Message

pytestmark = pytest.mark.real_cli

WAITING: Json = {"warm_pool": 1, "warm_conversations": 4}
MODELS = ("claude-opus-5-5", "claude-haiku-5-5")


def conversation(real: RealBackend, index: int = -1) -> list[tuple[str, list[str]]]:
    """Return the roles and texts that the API was sent."""
    return [(role, [block["text"] for block in blocks]) for role, blocks in said(real.mock.requests[index])]


def system_prompt(real: RealBackend, index: int = -1) -> str:
    return "\n".join(block["text"] for block in real.mock.requests[index].body["system"])


def process(real: RealBackend, index: int) -> str:
    """Return what names the process that a request came from."""
    return str(json.loads(real.mock.requests[index].body["metadata"]["user_id"])["session_id"])


async def test_the_same_words_of_another_caller_start_afresh(tmp_path: Path) -> None:
    async with open_real(tmp_path, **WAITING) as real:
        real.mock.script(Answer(Text("Noted.")))
        history = [user("my word is apple"), assistant("Noted."), user("which word?")]
        await real.ask(request(history[0], caller="alice"))
        await real.ask(request(*history, caller="bob"))
        await real.ask(request(*history, caller="alice"))

        told = [("user", ["my word is apple"]), ("assistant", ["Noted."]), ("user", ["which word?"])]
        assert conversation(real, 1) == conversation(real, 2) == told
        assert real.backend.children.counts.continued == 1
        assert process(real, 2) == process(real, 0) != process(real, 1)


async def test_a_child_that_waited_brings_nothing_of_an_earlier_request(tmp_path: Path) -> None:
    async with open_real(tmp_path, **WAITING) as real:
        for number in range(4):
            asked = user(f"question {number}")
            fields: Json = {
                "system": f"You are number {number}.",
                "model": MODELS[number % 2],
                "max_tokens": 2000 + number,
            }
            await real.ask(request(asked, caller=str(number % 2), **fields))

        for number, recorded in enumerate(real.mock.requests):
            assert conversation(real, number) == [("user", [f"question {number}"])]
            assert f"You are number {number}." in system_prompt(real, number)
            assert (recorded.body["model"], recorded.body["max_tokens"]) == (MODELS[number % 2], 2000 + number)
            others = {f"number {other}" for other in range(4)} - {f"number {number}"}
            assert not [other for other in others if other in system_prompt(real, number)]
        assert len({process(real, number) for number in range(4)}) == 4


async def test_conversations_that_take_turns_never_mix(tmp_path: Path) -> None:
    chance = random.Random(3)
    order = chance.sample([caller for caller in "abc" for _ in range(3)], 9)
    histories: dict[str, list[Message]] = {caller: [] for caller in "abc"}

    def next_turn(caller: str) -> CompletionRequest:
        history = histories[caller]
        history.append(user(f"{caller}{len(history) // 2}"))
        return request(*history, caller=caller)

    async with open_real(tmp_path, **WAITING) as real:
        for number, caller in enumerate(order):
            real.mock.script(Answer(Text(f"to {caller}")))
            answer = words(await real.ask(next_turn(caller)))

            assert answer == f"to {caller}"
            histories[caller].append(assistant(answer))
            told = conversation(real, number)
            assert {text[0] for role, [text] in told if role == "user"} == {caller}
            assert {text for role, [text] in told if role == "assistant"} <= {f"to {caller}"}
            assert len(told) == len(histories[caller]) - 1
