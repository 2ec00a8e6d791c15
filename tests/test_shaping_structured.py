"""An answer of a given form is asked for until it is right, a few times at most, and nothing of it is seen before."""

from typing import Any

import pytest
import trio
from scripted_attempts import USAGE, ScriptedAttempts, says
from trio.testing import MockClock

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    JsonFormat,
    Message,
    Refusal,
    Started,
    Text,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    Usage,
)
from ocp_trio.errors import InvalidRequestError, QueueFullError, UpstreamError
from ocp_trio.openai.structured import AnswerFormat, read_format
from ocp_trio.shaping import check_format, hold_to_format
from ocp_trio.testing.backend import Step

REQUEST = CompletionRequest(model="m", messages=(Message("user", (Text("hi"),)),), system="Be brief.")
INTEGER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
REFERRING = {"$ref": "#/$defs/a", "$defs": {"a": INTEGER}}
GOOD = says('{"a":', "1}")
BAD = says("Sorry, I ", "cannot.")
ALIVE = Activity("ping")


def wanted(schema: dict[str, Any] | None = None) -> AnswerFormat:
    return read_format(JsonFormat(schema=schema))


async def held(backend: ScriptedAttempts, *, attempts: int = 3, schema: dict[str, Any] | None = None) -> list[Batch]:
    async with hold_to_format(backend.stream, wanted(schema), attempts)(REQUEST) as batches:
        return [batch async for batch in batches]


async def end(*scripts: list[Step], **options: Any) -> tuple[Event, ...]:
    """Return the last batch of an answer."""
    return (await held(ScriptedAttempts(*scripts), **options))[-1]


def times(count: int) -> Usage:
    return Usage(*(count * each for each in (10, 5, 3, 2, 1)))


async def test_a_right_answer_comes_whole_at_the_end_and_only_life_before() -> None:
    script: list[Step] = [(ALIVE, TextDelta('{"a"')), (ThinkingDelta("hm"),), (TextDelta(":1}"),), (TextEnd(),)]

    seen = await held(ScriptedAttempts([*script, (Completed("stop", USAGE),)]))

    assert seen == [
        (Started(),),
        (ALIVE,),
        (),
        (),
        (),
        (ThinkingDelta("hm"), TextDelta('{"a":1}'), TextEnd(), Completed("stop", USAGE)),
    ]


async def test_a_fence_is_taken_off() -> None:
    assert (await end(says('```json\n{"a": 1}\n```')))[0] == TextDelta('{"a": 1}')


@pytest.mark.parametrize(
    "first",
    ["Sorry.", 'Here:\n```json\n{"a":1}\n```', '{"a":1} {"a":2}', "[1]", '{"a":1', "", "5"],
    ids=["prose", "prose round a fence", "two values", "no object", "cut", "nothing", "a number"],
)
async def test_a_wrong_answer_is_asked_for_again_and_usage_is_summed(first: str) -> None:
    backend = ScriptedAttempts(says(first), GOOD)

    last = (await held(backend))[-1]

    assert last == (TextDelta('{"a":1}'), TextEnd(), Completed("stop", times(2)))
    assert len(backend.requests) == 2


async def test_each_further_attempt_is_shown_all_earlier_ones() -> None:
    backend = ScriptedAttempts(BAD, says("[2]"), GOOD)

    await held(backend)

    assert [len(request.messages) for request in backend.requests] == [1, 3, 5]
    assert len({request.system for request in backend.requests}) == 1
    assert backend.requests[0].system.startswith("Be brief.\n\nYour whole answer has to be one JSON object")
    assert backend.requests[2].messages[3].parts == (Text("[2]"),)
    assert '[2] is not of type "object"' in str(backend.requests[2].messages[4])


async def test_when_no_attempt_is_right_the_answer_is_a_refusal() -> None:
    backend = ScriptedAttempts(BAD)

    last = (await held(backend))[-1]

    assert isinstance(last[0], Refusal)
    assert last[0].text.startswith("No usable JSON in 3 attempts: it is not JSON alone")
    assert last[0].text.endswith("The last answer was: Sorry, I cannot.")
    assert last[1:] == (Completed("stop", times(3)),)
    assert len(backend.requests) == 3


async def test_one_attempt_is_not_repeated() -> None:
    assert isinstance((await end(BAD, GOOD, attempts=1))[0], Refusal)


@pytest.mark.parametrize("schema", [INTEGER, REFERRING], ids=["in this process", "in one of its own"])
async def test_a_schema_decides(schema: dict[str, Any]) -> None:
    backend = ScriptedAttempts(says('{"a":"x"}'), GOOD)

    with trio.fail_after(10):
        await check_format(wanted(schema))
        last = (await held(backend, schema=schema))[-1]

    assert last[0] == TextDelta('{"a":1}')
    assert '$.a: "x" is not of type "integer"' in str(backend.requests[1].messages[2])


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_cut_answer_is_passed_on_without_another_attempt(reason: Any) -> None:
    said = (TextDelta('{"a":'), TextEnd())

    assert await end([(*said, Completed(reason, USAGE))], GOOD) == (*said, Completed(reason, USAGE))


@pytest.mark.parametrize("error", [UpstreamError("broken"), QueueFullError("full", retry_after=1)])
@pytest.mark.parametrize("attempt", [0, 1])
async def test_an_error_is_an_error_in_whichever_attempt(error: UpstreamError, attempt: int) -> None:
    failing: list[Step] = [(ALIVE,), error]

    assert await end(*[BAD] * attempt, failing, GOOD) == (Failed(error),)
    assert await end(*[BAD] * attempt, [(TextDelta("a"), Failed(error))], GOOD) == (Failed(error),)


async def test_a_backend_that_refuses_is_an_error() -> None:
    error = QueueFullError("full", retry_after=1)

    assert await held(ScriptedAttempts(GOOD, refuse=error)) == [(Failed(error),)]


async def test_a_stream_that_just_ends_has_no_end_of_ours() -> None:
    assert await held(ScriptedAttempts([(TextDelta('{"a":1}'),)], GOOD)) == [(Started(),), ()]


async def test_a_defect_is_raised_as_itself() -> None:
    with pytest.raises(ZeroDivisionError):
        await held(ScriptedAttempts([ZeroDivisionError()]))


async def test_the_work_of_an_attempt_is_over_before_the_next_begins(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts(BAD, BAD, GOOD, clean_up=5)
    began = trio.current_time()

    async with hold_to_format(backend.stream, wanted(), 3)(REQUEST) as batches:
        told = [(trio.current_time() - began, batch[0]) async for batch in batches if len(batch) > 1]

    assert told == [(10, TextDelta('{"a":1}'))]
    assert (backend.overlapped, backend.running, trio.current_time() - began) == (False, 0, 15)


async def test_whoever_leaves_ends_the_attempt_at_once(autojump_clock: MockClock) -> None:
    backend = ScriptedAttempts(BAD, [(ALIVE,), 1e6])
    began = trio.current_time()

    with trio.move_on_after(7):
        await held(backend)
    assert (backend.running, trio.current_time() - began) == (0, 7)

    async with hold_to_format(backend.stream, wanted(), 3)(REQUEST) as batches:
        assert await anext(batches) == (Started(),)
    assert (backend.running, trio.current_time() - began) == (0, 7)


@pytest.mark.parametrize("schema", [{"type": "x"}, {"$ref": "#/nowhere"}, {"$ref": "file:///etc/hostname"}])
async def test_a_form_that_is_none_is_refused_by_its_place(schema: dict[str, Any]) -> None:
    with trio.fail_after(10), pytest.raises(InvalidRequestError) as caught:
        await check_format(wanted(schema))

    assert (caught.value.code, caught.value.param) == ("unsupported_value", "response_format.json_schema.schema")


async def test_a_check_without_an_end_is_an_error() -> None:
    doubled = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}
    schema = {"$ref": "#/$defs/a0", "$defs": {**doubled, "a60": INTEGER}}

    with trio.fail_after(20):
        [failed] = await end(GOOD, schema=schema)

    assert isinstance(failed, Failed)
    assert "more than 1 s of computing" in str(failed.error)
