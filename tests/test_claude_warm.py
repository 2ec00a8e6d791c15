"""A child that was started ahead, or that holds the conversation, serves the next request: its own, and no other's."""

import json
import os
import random
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_backend import FakeBackend, ask, open_fake, request, words
from fake_script import Step, abandon, exits, failed_result, hang, message_end, prompt, raw, success, text
from watching import until, wait_for, wait_gone

from ocp_trio.completion import CompletionRequest, Image, Message, Text, ToolResult, ToolUse

HELLO = [text("Hello"), success()]


def user(*steps: Step, words: str = "hi") -> Message:
    return Message("user", (Text(prompt(*steps, text=words)),))


def assistant(words: str) -> Message:
    return Message("assistant", (Text(words),))


def completion(*messages: Message, **fields: Any) -> CompletionRequest:
    return CompletionRequest(**{"model": "claude-sonnet-4-6", "messages": messages, **fields})


async def answer(fake: FakeBackend, asked: CompletionRequest) -> str:
    async with fake.backend.stream(asked) as batches:
        return words([event async for batch in batches for event in batch])


async def wait_until_warm(fake: FakeBackend, count: int = 1) -> list[int]:
    """Wait for unused children, and return the ids of all children that have begun to run."""
    await wait_for(fake.folder / "records", lambda: fake.backend.children.waiting >= count or None)
    await wait_for(fake.folder / "records", lambda: len(fake.records()) >= count or None)
    return [run.pid for run in fake.records()]


async def until_counted(fake: FakeBackend, name: str, count: int) -> None:
    async def reached() -> bool:
        return bool(getattr(fake.backend.children.counts, name) >= count)

    await until(reached)


def has_begun(fake: FakeBackend, count: int) -> bool:
    return len(fake.records()) >= count


def served(fake: FakeBackend) -> list[tuple[int, int]]:
    """Return for each child that was asked anything: its id, and how many questions it was asked."""
    return [(run.pid, len(run.queries)) for run in fake.records() if run.queries]


# Started ahead


async def test_a_request_is_served_by_the_child_that_waited(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=1) as fake:
        [waiting] = await wait_until_warm(fake)

        assert words(await ask(fake, *HELLO, system="SYS", effort="low", max_tokens=2000)) == "Hello"

        assert served(fake) == [(waiting, 1)]
        controls = [json.loads(line)["request"] for line in fake.records()[0].stdin[1:3]]
        assert controls[0] == {"subtype": "initialize", "systemPrompt": ["SYS"]}
        assert controls[1]["settings"]["model"] == "claude-sonnet-4-6"
        assert fake.backend.children.counts.hits == 1


async def test_it_is_used_once_and_replaced(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=1) as fake:
        for turn in range(2):
            await wait_for(tmp_path / "records", lambda: fake.backend.children.waiting or None)
            await wait_for(tmp_path / "records", partial(has_begun, fake, turn + 1))
            await ask(fake, *HELLO)

        assert [questions for _, questions in served(fake)] == [1, 1]
        assert fake.backend.children.counts.hits == 2


async def test_without_one_that_waits_a_request_starts_its_own(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=0) as fake:
        assert words(await ask(fake, *HELLO)) == "Hello"

        counts = fake.backend.children.counts
        assert (counts.hits, counts.misses) == (0, 1)


async def test_one_that_dies_while_it_waits_is_replaced_and_no_request_notices(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=1) as fake:
        [waiting] = await wait_until_warm(fake)
        os.kill(waiting, signal.SIGKILL)
        await wait_gone(waiting)

        assert words(await ask(fake, *HELLO)) == "Hello"

        await until_counted(fake, "failed_starts", 1)
        assert waiting not in [pid for pid, _ in served(fake)]


async def test_one_that_speaks_unasked_is_not_used(tmp_path: Path) -> None:
    async with open_fake(tmp_path, startup=[raw(b'{"type":"future"}\n')], warm_pool=1) as fake:
        await until_counted(fake, "failed_starts", 1)

        assert fake.backend.children.counts.hits == 0


async def test_a_program_that_ends_at_once_is_not_started_again_and_again(tmp_path: Path) -> None:
    async with open_fake(tmp_path, startup=[exits(1)], warm_pool=1) as fake:
        await until_counted(fake, "failed_starts", 2)
        began = trio.current_time()
        await until_counted(fake, "failed_starts", 3)

        assert trio.current_time() - began >= 2


async def test_one_of_a_program_that_has_been_replaced_is_not_used(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=1) as fake:
        [waiting] = await wait_until_warm(fake)
        program = tmp_path / "claude"
        os.utime(program, ns=(1, 1))

        await ask(fake, *HELLO)

        assert waiting not in [pid for pid, _ in served(fake)]


async def test_one_of_another_login_is_not_used(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=1) as fake:
        [waiting] = await wait_until_warm(fake)
        (tmp_path / ".claude").mkdir()
        (tmp_path / ".claude" / ".credentials.json").write_text("{}")

        await ask(fake, *HELLO)

        assert waiting not in [pid for pid, _ in served(fake)]


async def test_a_waiting_child_takes_no_slot(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_pool=2, max_concurrent=1) as fake:
        await wait_until_warm(fake, 2)

        assert fake.backend.slots.in_flight == 0


# Kept for its conversation


async def test_the_next_turn_of_a_conversation_goes_to_the_child_that_holds_it(tmp_path: Path) -> None:
    first = user(*HELLO, words="one")
    second = user(text("World"), success(), words="two")

    async with open_fake(tmp_path, warm_conversations=1) as fake:
        assert await answer(fake, completion(first)) == "Hello"
        assert fake.backend.slots.in_flight == 0
        assert await answer(fake, completion(first, assistant("Hello"), second)) == "World"
        assert await answer(fake, completion(first, assistant("Hello"), second, assistant("World"), first)) == "Hello"

        [run] = fake.records()
        assert [len(query) for query in run.queries] == [1, 3, 5]
        assert sum('"initialize"' in line for line in run.stdin) == 1
        assert fake.backend.children.counts.continued == 2


FIRST = user(*HELLO, words="one")
NEXT = user(*HELLO, words="two")
CALL = Message("assistant", (Text("Hello"), ToolUse("c", "f", {})))
ALICE = {"caller": "alice", "system": "SYS", "max_tokens": 2000, "effort": "low"}


@pytest.mark.parametrize(
    ("messages", "changed"),
    [
        ((FIRST, assistant("Hello"), NEXT), {"caller": "bob"}),
        ((FIRST, assistant("Hello"), NEXT), {"caller": ""}),
        ((FIRST, assistant("Hello"), NEXT), {"model": "claude-opus-5-5"}),
        ((FIRST, assistant("Hello"), NEXT), {"system": "other"}),
        ((FIRST, assistant("Hello"), NEXT), {"max_tokens": None}),
        ((FIRST, assistant("Hello"), NEXT), {"effort": "high"}),
        ((FIRST, assistant("Hello!"), NEXT), {}),
        ((user(*HELLO, words="edited"), assistant("Hello"), NEXT), {}),
        ((NEXT,), {}),
        ((FIRST,), {}),
        ((NEXT, assistant("x"), FIRST, assistant("Hello"), NEXT), {}),
        ((FIRST, CALL, Message("user", (ToolResult("c", ()), *NEXT.parts))), {}),
        ((Message("user", (*FIRST.parts, Image("image/png", "AAAA"))), assistant("Hello"), NEXT), {}),
    ],
    ids=[
        "another caller",
        "no caller",
        "another model",
        "another system prompt",
        "another limit",
        "another effort",
        "an edited answer",
        "an edited question",
        "another question",
        "a shortened history",
        "a longer history",
        "a call in the answer",
        "an image in the question",
    ],
)  # fmt: skip
async def test_anything_that_does_not_match_exactly_starts_afresh(
    tmp_path: Path, messages: tuple[Message, ...], changed: dict[str, Any]
) -> None:
    async with open_fake(tmp_path, warm_conversations=4) as fake:
        await answer(fake, completion(FIRST, **ALICE))
        await answer(fake, completion(*messages, **{**ALICE, **changed}))

        assert fake.backend.children.counts.continued == 0
        holder, other = fake.records()
        assert len(holder.queries) == 1
        assert len(other.queries[-1]) == len(messages)


@pytest.mark.parametrize(
    "steps",
    [
        [text("Hello"), message_end("max_tokens"), success()],
        [text("Hello"), failed_result("API Error")],
        [text("Hello"), abandon(), text("Other"), success()],
        [text("Hello"), exits(0)],
    ],
    ids=["cut at its limit", "failed", "broken off", "gone"],
)
async def test_the_child_of_a_turn_that_did_not_end_well_is_not_kept(tmp_path: Path, steps: list[Step]) -> None:
    async with open_fake(tmp_path, warm_conversations=4) as fake:
        await answer(fake, completion(user(*steps)))

        assert fake.backend.children.conversations == 0


async def test_the_child_of_a_turn_that_was_left_is_not_kept(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_conversations=4) as fake:
        async with fake.backend.stream(request(text("Hello"), hang())):
            await fake.record()

        assert fake.backend.children.conversations == 0


async def test_of_two_equal_requests_at_once_one_goes_on_and_the_other_starts_afresh(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_conversations=4) as fake:
        await answer(fake, completion(FIRST))
        asked = completion(FIRST, assistant("Hello"), NEXT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, fake, asked)
            nursery.start_soon(answer, fake, asked)

        assert fake.backend.children.counts.continued == 1
        assert sorted(questions for _, questions in served(fake)) == [1, 2]


async def test_a_child_that_has_died_meanwhile_is_replaced_and_the_client_does_not_notice(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_conversations=4) as fake:
        await answer(fake, completion(FIRST))
        os.kill(fake.records()[0].pid, signal.SIGKILL)

        assert await answer(fake, completion(FIRST, assistant("Hello"), NEXT)) == "Hello"

        assert len(fake.records()[1].queries[-1]) == 3


async def test_the_least_recently_used_goes_when_there_are_too_many(tmp_path: Path) -> None:
    async with open_fake(tmp_path, warm_conversations=2) as fake:
        asked = [user(*HELLO, words=str(number)) for number in range(3)]
        for each in asked:
            await answer(fake, completion(each))
        assert fake.backend.children.conversations == 2

        for each in reversed(asked):
            await answer(fake, completion(each, assistant("Hello"), NEXT))

        assert fake.backend.children.counts.continued == 2


async def test_without_the_setting_no_child_stays(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        await answer(fake, completion(FIRST))
        await answer(fake, completion(FIRST, assistant("Hello"), NEXT))

        assert [questions for _, questions in served(fake)] == [1, 1]


async def test_any_order_of_use_and_cancellation_loses_no_child(tmp_path: Path) -> None:
    chance = random.Random(7)

    async def use(fake: FakeBackend, number: int) -> None:
        first = user(*HELLO, words=str(number % 5))
        with trio.move_on_after(chance.choice([0.0, 0.02, 0.05, 0.1, 10.0])):
            await answer(fake, completion(first))
            await answer(fake, completion(first, assistant("Hello"), NEXT))

    async with open_fake(tmp_path, warm_pool=2, warm_conversations=3, max_concurrent=4, max_queue=100) as fake:
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(use, fake, number)

        assert (fake.backend.slots.in_flight, fake.backend.slots.queued) == (0, 0)
        assert fake.backend.children.conversations <= 3
