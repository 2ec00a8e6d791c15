"""A client sees the model's messages once, whole and in order, whatever way the CLI tells them."""

import pytest
from claude_lines import (
    Json,
    abandoned,
    assistant,
    block,
    delta,
    event,
    message_delta,
    message_start,
    message_stop,
    result,
    seen,
    stop,
    streamed,
    text,
    thinking,
    tool_result,
    tool_use,
    user,
)

from ocp_trio.completion import Completed, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, Usage
from ocp_trio.errors import UpstreamError

ONE = TextDelta("one"), TextEnd()
DONE = Completed("stop")
BROKE_OFF = [message_start("m1"), block(), delta("one t"), stop(), abandoned(0)]
DIFFERENT = (UpstreamError, "upstream broke off, then gave a different answer after part of one had been sent")
SHORTER = (UpstreamError, "upstream broke off, then gave a shorter answer after more of one had been sent")


def contents(*lines: Json) -> list[object]:
    """Return what is seen, without the tokens."""
    return [Completed(e.finish_reason) if isinstance(e, Completed) else e for e in seen(*lines)]


def words(*lines: Json) -> str:
    return "".join(event.text for event in seen(*lines) if isinstance(event, TextDelta))


# Told twice


def test_deltas_are_said_one_by_one_and_their_aggregate_not_again() -> None:
    said = contents(*streamed("EC", "HO"), result("ECHO"))

    assert said == [TextDelta("EC"), TextDelta("HO"), TextEnd(), DONE]


def test_an_aggregate_without_deltas_is_said() -> None:
    assert contents(assistant(text("one")), result("one")) == [*ONE, DONE]


def test_an_aggregate_that_comes_again_is_not_said_again() -> None:
    assert contents(assistant(text("one")), assistant(text("one")), result("one")) == [*ONE, DONE]


def test_what_only_the_result_says_is_said() -> None:
    assert contents(result("one")) == [*ONE, DONE]


def test_a_result_that_cannot_be_encoded_is_made_so() -> None:
    assert words(result("a\ud83db")) == "a\N{REPLACEMENT CHARACTER}b"


def test_the_rest_of_a_block_comes_from_its_aggregate() -> None:
    lines = [message_start(), block(), delta("on"), assistant(text("one")), stop(), message_stop(), result("one")]

    assert contents(*lines) == [TextDelta("on"), TextDelta("e"), TextEnd(), DONE]


def test_text_that_a_block_begins_with_is_said() -> None:
    lines = [message_start(), block(text="o"), delta("ne"), assistant(text("one")), stop(), message_stop(), result()]

    assert contents(*lines) == [TextDelta("o"), TextDelta("ne"), TextEnd(), DONE]


def test_deltas_of_a_block_that_nobody_began_are_said() -> None:
    said = contents(message_start(), delta("hm", 0, "thinking"), delta("one", 1), stop(0), stop(1), result())

    assert said == [ThinkingDelta("hm"), TextDelta("one"), ThinkingEnd(), TextEnd(), DONE]


def test_the_end_of_a_block_that_never_began_says_nothing() -> None:
    assert contents(message_start(), stop(3), message_stop(), result()) == [DONE]


def test_an_empty_block_only_ends() -> None:
    assert contents(message_start(), block(), stop(), message_stop(), result()) == [TextEnd(), DONE]


def test_a_character_split_over_two_deltas_is_one() -> None:
    lines = [message_start(), block(), delta("a\ud83d"), delta("\ude00"), assistant(text("a\N{GRINNING FACE}"))]

    assert contents(*lines, stop(), result())[:3] == [TextDelta("a"), TextDelta("\N{GRINNING FACE}"), TextEnd()]


def test_half_a_character_at_the_end_of_a_block_is_replaced() -> None:
    said = contents(message_start(), block(), delta("a\ud83d"), stop(), message_stop(), result())

    assert said == [TextDelta("a"), TextDelta("\N{REPLACEMENT CHARACTER}"), TextEnd(), DONE]


@pytest.mark.parametrize(
    "odd",
    [{"type": "assistant"}, {"type": "assistant", "message": 5}, {"type": "assistant", "message": {"content": ""}}],
)
def test_an_aggregate_that_says_nothing_changes_nothing(odd: Json) -> None:
    begun = [message_start(), block(), delta("one"), odd, delta(" two"), odd]

    assert words(*begun, assistant(text("one two")), odd, stop(), message_stop(), odd, result("one two")) == "one two"


def test_an_aggregate_that_names_no_message_belongs_to_the_newest() -> None:
    nameless = assistant(text("one"), message_id="")

    assert words(message_start(), block(), delta("on"), nameless, stop(), message_stop(), result("one")) == "one"


# Several blocks, several messages


def test_reasoning_is_told_apart_from_text() -> None:
    block_of_thinking = [block(0, "thinking", thinking=""), delta("h", 0, "thinking"), delta("m", 0, "thinking")]
    signed = [event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "s"})]
    repeated = [assistant(thinking("hm")), stop(0)]

    said = contents(
        message_start(), *block_of_thinking, *signed, *repeated, block(1), delta("one", 1), stop(1), result()
    )

    assert said == [ThinkingDelta("h"), ThinkingDelta("m"), ThinkingEnd(), *ONE, DONE]


def test_reasoning_that_was_not_streamed_is_told() -> None:
    said = contents(assistant(thinking("hm")), assistant(text("one")), result("one"))

    assert said == [ThinkingDelta("hm"), ThinkingEnd(), *ONE, DONE]


def test_blocks_of_one_message_follow_each_other_directly() -> None:
    assert words(message_start(), block(0), delta("one"), stop(0), block(1), delta("two", 1), stop(1), result()) == (
        "onetwo"
    )


def test_texts_around_a_tool_are_both_said() -> None:
    call = [message_start("m1"), block(), delta("Look."), assistant(text("Look.")), stop(), block(1, "tool_use")]
    end = [assistant(tool_use()), stop(1), message_delta("tool_use"), message_stop(), user(tool_result())]

    assert words(*call, *end, *streamed("Answer", message_id="m2"), result("Answer")) == "Look.\n\nAnswer"


def test_aggregates_around_a_tool_are_both_said() -> None:
    lines = [assistant(text("Look."), message_id="m1"), assistant(tool_use(), message_id="m1"), user(tool_result())]

    assert words(*lines, assistant(text("Answer"), message_id="m2"), result("Answer")) == "Look.\n\nAnswer"


def test_the_result_of_a_tool_may_come_before_its_message_ends() -> None:
    call = [message_start("m1"), block(0, "tool_use"), assistant(tool_use()), user(tool_result()), stop(0)]

    assert words(*call, message_delta("tool_use"), message_stop(), *streamed("one", message_id="m2"), result()) == "one"


def test_what_a_subagent_says_is_no_part_of_the_answer() -> None:
    nested = [line | {"parent_tool_use_id": "t"} for line in streamed("secret", message_id="m9")]

    assert contents(message_start(), block(), delta("on"), *nested, delta("e"), stop(), result("one")) == [
        TextDelta("on"),
        TextDelta("e"),
        TextEnd(),
        DONE,
    ]


# Streams that break


def test_a_stream_that_restarts_says_only_what_is_new() -> None:
    assert words(*BROKE_OFF, *streamed("one", " two", message_id="m2"), result("one two")) == "one two"


def test_a_restart_may_break_off_again() -> None:
    again = [message_start("m2"), block(), delta("on"), stop(), abandoned(0)]

    assert words(*BROKE_OFF, *again, *streamed("one two", message_id="m3"), result("one two")) == "one two"


def test_an_answer_that_was_not_streamed_may_take_up_a_broken_one() -> None:
    assert words(*BROKE_OFF, assistant(text("one two"), message_id="m2"), result("one two")) == "one two"


@pytest.mark.parametrize("lines", [streamed("two", message_id="m2"), [assistant(text("two"), message_id="m2")]])
def test_a_different_answer_after_a_broken_one_is_an_error(lines: list[Json]) -> None:
    assert seen(*BROKE_OFF, *lines, result("two")) == [TextDelta("one t"), TextEnd(), DIFFERENT]


def test_a_shorter_answer_after_a_broken_one_is_an_error() -> None:
    assert seen(*BROKE_OFF, *streamed("one", message_id="m2"), result("one"))[-1] == SHORTER


def test_a_shorter_answer_that_was_not_streamed_is_an_error() -> None:
    said = seen(*BROKE_OFF, assistant(text("one"), message_id="m2"), result("one"))

    assert said == [TextDelta("one t"), TextEnd(), TextEnd(), SHORTER]


def test_a_stream_that_breaks_before_its_text_may_be_answered_anew() -> None:
    broken = [message_start("m1"), abandoned(0)]

    assert contents(*broken, *streamed("one", message_id="m2"), result("one")) == [*ONE, DONE]


def test_reasoning_before_a_break_stands_and_what_follows_is_told_too() -> None:
    broken = [message_start("m1"), block(0, "thinking"), delta("h", 0, "thinking"), stop(0), abandoned(0)]
    anew = [message_start("m2"), block(0, "thinking"), delta("hm", 0, "thinking"), stop(0), message_stop(), result()]

    assert contents(*broken, *anew) == [ThinkingDelta("h"), ThinkingEnd(), ThinkingDelta("hm"), ThinkingEnd(), DONE]


def test_a_message_that_breaks_off_after_a_finished_block_is_continued() -> None:
    finished = [message_start("m1"), block(), delta("one"), assistant(text("one")), stop()]
    broken = [block(1), delta(" tw", 1), stop(1), abandoned(1), user(text("go on"), isSynthetic=True)]

    assert words(*finished, *broken, *streamed(" two", message_id="m2"), result(" two")) == "one two"


def test_a_tool_call_that_broke_off_does_not_run_on() -> None:
    finished = [message_start("m1"), block(), delta("one"), assistant(text("one")), stop(), block(1, "tool_use")]

    assert words(*finished, abandoned(1), *streamed(" two", message_id="m2"), result(" two")) == "one two"


def test_a_message_after_a_broken_and_restarted_one_is_another_message() -> None:
    assert words(*BROKE_OFF, *streamed("one two", message_id="m2"), *streamed("three", message_id="m3"), result()) == (
        "one two\n\nthree"
    )


def test_a_break_in_the_second_message_concerns_that_one_only() -> None:
    broken = [message_start("m2"), block(), delta("tw"), stop(), abandoned(0)]

    assert words(*streamed("one"), *broken, *streamed("two", message_id="m3"), result("two")) == "one\n\ntwo"


def test_a_message_that_never_ended_has_broken_off() -> None:
    older = [message_start("m1"), block(), delta("one t")]

    assert words(*older, *streamed("one two", message_id="m2"), result("one two")) == "one two"


# What looks like the CLI's own words


NOTICE = "Not logged in · Please run /login"


def test_a_notice_that_a_good_result_follows_was_the_models() -> None:
    assert contents(assistant(text(NOTICE)), result(NOTICE)) == [TextDelta(NOTICE), TextEnd(), DONE]


def test_a_notice_is_said_before_whatever_follows_it() -> None:
    assert words(assistant(text(NOTICE)), assistant(text("one")), result("one")) == f"{NOTICE}one"
    assert words(assistant(text(NOTICE)), *streamed("one", message_id="m2"), result("one")) == f"{NOTICE}\n\none"


def test_a_streamed_text_is_no_notice() -> None:
    assert contents(*streamed(NOTICE), result(NOTICE)) == [TextDelta(NOTICE), TextEnd(), DONE]


# Tokens


def test_tokens_are_those_of_the_result() -> None:
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200}

    completed = seen(*streamed("one"), result("one", usage=usage))[-1]

    assert completed == Completed("stop", Usage(input=3, output=5, cache_read=1000, cache_write=200))


def test_tokens_of_all_messages_are_summed_without_a_result() -> None:
    lines = [*streamed("one", output_tokens=5), *streamed("two", message_id="m2", output_tokens=7)]

    assert seen(*lines, result("two"))[-1] == Completed("stop", Usage(input=6, output=12))


def test_a_line_that_is_no_message_does_not_begin_another_one() -> None:
    said = words(message_start("m1"), block(), delta("Hel"), {"type": "assistant"}, delta("lo"), stop(), message_stop())

    assert said == "Hello"
