"""Only tools that may be called are offered, and one that has to be called is asked for until it is."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from fake_backend import collect, seen

from ocp_trio.claude.tool_choice import choose_tools, stream_forced
from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Failed,
    Message,
    Started,
    Text,
    TextDelta,
    Tool,
    ToolCallStart,
    ToolChoice,
    Usage,
)
from ocp_trio.errors import QueueFullError, UpstreamError

LOOK, WAIT = Tool("look", "", {}), Tool("wait", "", {})
ASK = Message("user", (Text("hi"),))
COST = Usage(input=10, output=5)
PROSE: list[Batch] = [(Started(),), (TextDelta("No."), Activity("ping")), (Completed("stop", COST),)]
CALL: list[Batch] = [(TextDelta("So."),), (ToolCallStart(0, "c1", "look"),), (Completed("tool_calls", COST),)]
CALLED = [TextDelta("So."), ToolCallStart(0, "c1", "look")]


def request(choice: ToolChoice | None = None) -> CompletionRequest:
    choice = choice or ToolChoice("required")
    return CompletionRequest(model="m", system="S", messages=(ASK,), tools=(LOOK, WAIT), tool_choice=choice)


class Answers:
    """A stream that gives one answer after the other, the last one again and again, and remembers the requests."""

    def __init__(self, *answers: list[Batch]) -> None:
        self.asked: list[CompletionRequest] = []
        self._answers = list(answers)

    @asynccontextmanager
    async def stream(self, asked: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        self.asked.append(asked)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

        async def batches() -> AsyncGenerator[Batch, None]:
            for batch in answer:
                yield batch

        async with aclosing(batches()) as opened:
            yield opened


async def forced(answers: Answers) -> list[object]:
    async with stream_forced(answers.stream, choose_tools(request())) as batches:
        return seen(await collect(batches))


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        (ToolChoice("auto"), (LOOK, WAIT)),
        (ToolChoice("required"), (LOOK, WAIT)),
        (ToolChoice("none"), ()),
        (ToolChoice("auto", ("wait",)), (WAIT,)),
        (ToolChoice("required", ("wait",)), (WAIT,)),
    ],
)
def test_the_choice_says_which_tools_are_offered(choice: ToolChoice, offered: tuple[Tool, ...]) -> None:
    assert choose_tools(request(choice)).tools == offered


def test_only_a_call_that_has_to_be_made_is_told_to_the_model() -> None:
    assert choose_tools(request(ToolChoice("auto", ("wait",)))).system == "S"
    order = choose_tools(request(ToolChoice("required", ("wait",)))).system
    assert order.startswith("S\n\nAnswer only by calling the tool mcp__client__wait.")


async def test_a_call_at_once_is_passed_on_with_what_was_said_before_it() -> None:
    assert await forced(Answers(CALL)) == [*CALLED, Completed("tool_calls", COST)]


async def test_an_answer_without_a_call_is_not_seen_and_asked_for_again() -> None:
    answers = Answers(PROSE, CALL)

    assert await forced(answers) == [*CALLED, Completed("tool_calls", Usage(input=20, output=10))]

    _, again = answers.asked
    assert again.messages[:2] == (ASK, Message("assistant", (Text("No."),)))
    assert "mcp__client__look, mcp__client__wait" in str(again.messages[2])


async def test_after_an_empty_answer_the_complaint_joins_the_question() -> None:
    answers = Answers([(Completed("stop", COST),)], CALL)
    await forced(answers)

    [asked] = answers.asked[1].messages
    assert asked.parts[0] == Text("hi")


async def test_there_is_an_end_to_asking() -> None:
    answers = Answers(PROSE)

    assert await forced(answers) == [(UpstreamError, "the model called no tool in 3 attempts, and it had to")]
    assert len(answers.asked) == 3


async def test_an_answer_that_was_cut_is_passed_on_as_it_is() -> None:
    cut: list[Batch] = [(TextDelta("No"),), (Completed("length", COST),)]

    assert await forced(Answers(cut)) == [TextDelta("No"), Completed("length", COST)]


async def test_an_error_ends_it() -> None:
    full = QueueFullError("full", retry_after=5)

    assert await forced(Answers([(Failed(full),)])) == [(QueueFullError, "full")]


async def test_whoever_leaves_before_the_call_ends_the_attempt() -> None:
    answers = Answers(PROSE)
    async with stream_forced(answers.stream, request()) as batches:
        async for _ in batches:
            break

    assert len(answers.asked) == 1
