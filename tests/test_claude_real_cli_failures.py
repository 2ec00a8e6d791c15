"""What fails upstream, or is cancelled here, ends the real CLI's answer in one clear way."""

import os
from pathlib import Path
from typing import Literal

import pytest
import trio
import watching
from fake_backend import collect, seen, words
from mock_anthropic import api_error
from real_backend import RealBackend, open_real, request, user
from sse_script import Answer, BlockEnd, Cut, Fail, HttpAnswer, Step, Tell, Wait
from sse_script import Text as Say

from ocp_trio.completion import Completed, CompletionRequest, Event, Failed, TextDelta
from ocp_trio.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
)

pytestmark = pytest.mark.real_cli

ONCE = {"CLAUDE_CODE_MAX_RETRIES": "0"}
DIFFERENT = (UpstreamError, "upstream broke off, then gave a different answer after part of one had been sent")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (api_error(400, "prompt is too long: 250000 tokens > 200000 maximum"), ContextLengthError),
        (api_error(400, "messages.0: bad"), InvalidRequestError),
        (api_error(401, "invalid x-api-key"), UpstreamAuthError),
        (api_error(404, "model: claude-x"), ModelNotFoundError),
        (api_error(429, "slow down", headers={"retry-after": "3600"}), UpstreamRateLimitError),
        (api_error(500, "secret of the house"), UpstreamError),
        (api_error(529, "Overloaded"), UpstreamOverloadedError),
    ],
    ids=["too long", "400", "401", "404", "429", "500", "529"],
)
async def test_an_error_of_the_api_is_told_by_its_class(
    tmp_path: Path, answer: HttpAnswer, error: type[OcpError]
) -> None:
    async with open_real(tmp_path, env=ONCE) as real:
        real.mock.script(answer)
        events = await real.ask(request())

    [last] = [event for event in events if isinstance(event, Failed)]
    assert type(last.error) is error
    assert words(events) == ""
    assert not [word for word in ("secret", str(tmp_path), "claude.exe", "tokens >") if word in str(last.error)]


async def test_a_cli_that_is_not_logged_in_says_so_without_asking_the_api(tmp_path: Path) -> None:
    async with open_real(tmp_path, pass_environment=["ANTHROPIC_BASE_URL"]) as real:
        events = await real.ask(request())
        asked = real.mock.requests

    login = "the claude CLI is not logged in, or its credential was refused: run `claude /login`"
    assert seen(events) == [(UpstreamAuthError, login)]
    assert asked == []


async def test_a_prompt_that_the_cli_itself_refuses_is_too_long(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        events = await real.ask(request(user("word " * 1_200_000)))
        asked = [recorded for recorded in real.mock.requests if recorded.path.startswith("/v1/messages?")]

    assert [type(event.error) for event in events if isinstance(event, Failed)] == [ContextLengthError]
    assert asked == []


# Streams that break


async def ask_and_break(real: RealBackend, *steps: Step, then: Answer) -> list[Event]:
    """Break the API's stream after ``steps`` once a client has seen the last of their text."""
    *before, last = steps
    told = trio.Event()
    real.mock.script(Answer(*before, Wait(told), last), then)
    texts = [step.text for step in before if isinstance(step, Say)]
    events: list[Event] = []
    async with real.backend.stream(request()) as batches:
        async for batch in batches:
            events += batch
            if TextDelta(texts[-1]) in batch:
                told.set()
    return events


@pytest.mark.parametrize("how", ["fin", "rst", "truncated"])
async def test_a_dropped_stream_that_restarts_the_same_goes_on(
    tmp_path: Path, how: Literal["fin", "rst", "truncated"]
) -> None:
    async with open_real(tmp_path) as real:
        events = await ask_and_break(real, Say("one "), Say("t"), Cut(how), then=Answer(Say("one two")))

    assert words(events) == "one two"
    assert isinstance(events[-1], Completed)


async def test_a_dropped_stream_that_restarts_differently_is_an_error(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        events = await ask_and_break(real, Say("one "), Cut("fin"), then=Answer(Say("two")))

    assert seen(events) == [TextDelta("one "), DIFFERENT]


async def test_an_error_in_mid_stream_is_made_good_by_an_answer_that_begins_the_same(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        events = await ask_and_break(real, Say("one "), Fail(), then=Answer(Say("one two")))

    assert words(events) == "one two"
    assert isinstance(events[-1], Completed)


async def test_an_error_in_mid_stream_that_is_answered_differently_is_an_error(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        events = await ask_and_break(real, Say("one "), Fail(), then=Answer(Say("two")))

    assert seen(events) == [TextDelta("one "), DIFFERENT]


async def test_a_stream_that_breaks_after_a_finished_block_is_continued(tmp_path: Path) -> None:
    broken = (Say("one"), BlockEnd(), Say(" tw"), Cut("fin"))

    async with open_real(tmp_path) as real:
        events = await ask_and_break(real, *broken, then=Answer(Say(" two")))

    assert words(events) == "one two"


async def test_an_answer_that_was_not_streamed_may_be_cut_short_too(tmp_path: Path) -> None:
    whole = Answer(Say("one two"), stop_reason="max_tokens")

    async with open_real(tmp_path) as real:
        events = await ask_and_break(real, Say("one "), Fail(), then=whole)

    assert words(events) == "one two"
    assert isinstance(events[-1], Completed)
    assert events[-1].finish_reason == "length"


# Clients that leave


async def leave(real: RealBackend, asked: CompletionRequest) -> None:
    async with real.backend.stream(asked) as batches:
        await collect(batches)


async def test_a_disconnect_in_mid_stream_ends_the_api_request_and_the_process(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        told = trio.Event()
        real.mock.script(Answer(Say("one"), Tell(told), Wait(trio.Event())))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave, real, request())
            await told.wait()
            nursery.cancel_scope.cancel()

        assert watching.children(os.getpid()) == []
        await real.mock.requests[0].closed.wait()


async def test_a_disconnect_before_the_first_word_does_so_too(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        real.mock.script(Answer(before_headers=(Wait(trio.Event()),)))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave, real, request())
            recorded = await real.mock.wait_request(0)
            nursery.cancel_scope.cancel()

        assert watching.children(os.getpid()) == []
        await recorded.closed.wait()
