"""An answer ends exactly once, for the reason that the CLI gives."""

import logging

import pytest
from claude_lines import (
    Json,
    abandoned,
    assistant,
    block,
    delta,
    event,
    feed,
    message_delta,
    message_start,
    message_stop,
    result,
    seen,
    streamed,
    text,
    tool_result,
    tool_use,
    user,
)

from ocp_trio.claude.reconcile import MAX_FRUITLESS, Reconciler
from ocp_trio.completion import Activity, Completed, Failed, TextDelta, TextEnd, Usage
from ocp_trio.errors import (
    ContextLengthError,
    OcpError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamRateLimitError,
    UsageLimitError,
)

ACK = result(num_turns=0)
PART = [TextDelta("part"), TextEnd()]
GO_ON = user(text("Output token limit hit. Resume directly."), isSynthetic=True)
TOKENS = Usage(input=3, output=5)


def failed(said: str, **fields: object) -> Json:
    return result(said, is_error=True, stop_reason="stop_sequence", terminal_reason="api_error", **fields)


def error_of(*lines: Json) -> OcpError:
    last = feed(Reconciler(), *lines)[-1]
    assert isinstance(last, Failed)
    return last.error


def system(subtype: str, **fields: object) -> Json:
    return {"type": "system", "subtype": subtype, **fields}


# How an answer ends


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("of the future", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        # The CLI's own tools have been executed by then.
        ("tool_use", "stop"),
    ],
)
def test_the_last_messages_stop_reason_is_the_finish_reason(stop_reason: str, finish_reason: str) -> None:
    said = seen(*streamed("part", stop_reason=stop_reason), result("part"))

    assert said == [*PART, Completed(finish_reason, TOKENS)]  # type: ignore[arg-type]  # parametrised


def test_the_results_own_stop_reason_counts_where_no_message_has_one() -> None:
    assert seen(result("part", stop_reason="max_tokens")) == [*PART, Completed("length")]


@pytest.mark.parametrize("stop_reason", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_that_is_too_long_ends_where_the_cli_would_ask_for_more(stop_reason: str) -> None:
    more = [*streamed("more", message_id="m2"), result("more", usage={"input_tokens": 9, "output_tokens": 9})]

    said = seen(*streamed("part", stop_reason=stop_reason), GO_ON, *more)

    assert said == [*PART, Completed("length", TOKENS)]


def test_an_answer_that_is_too_long_ends_with_its_message_before_the_cli_asks_for_more() -> None:
    assert seen(*streamed("part", stop_reason="max_tokens")) == [*PART, Completed("length", TOKENS)]


def test_an_answer_that_was_not_streamed_and_is_too_long_ends_there_too() -> None:
    whole = assistant(text("part"), stop_reason="max_tokens")

    assert seen(whole, GO_ON, *streamed("more", message_id="m2")) == [*PART, Completed("length")]


def test_an_answer_that_the_cli_gave_up_to_lengthen_is_too_long() -> None:
    assert seen(failed("API Error: too long", api_error="max_output_tokens")) == [Completed("length")]


def test_an_answer_that_took_too_many_rounds_is_cut_short() -> None:
    ended = result(subtype="error_max_turns", is_error=True, terminal_reason="max_turns")

    assert seen(*streamed("part", stop_reason="tool_use"), ended) == [*PART, Completed("length", TOKENS)]


def test_a_refusal_ends_the_answer_without_the_clis_own_words() -> None:
    words = text("API Error: safeguards flagged this message")
    reported = assistant(words, message_id="x", error="invalid_request", is_api_error_message=True)
    refused = failed("API Error: safeguards flagged this message") | {"stop_reason": "refusal"}

    said = seen(*streamed("part", stop_reason="refusal"), reported, refused)

    assert said == [*PART, Completed("content_filter", TOKENS)]


def test_a_refusal_that_the_cli_would_argue_with_ends_the_answer() -> None:
    argument = user(text("Your response above was stopped."), isSynthetic=True)

    assert seen(*streamed("part", stop_reason="refusal"), argument) == [*PART, Completed("content_filter", TOKENS)]


def test_an_empty_answer_is_an_answer() -> None:
    assert seen(result("", stop_reason="end_turn")) == [Completed("stop")]


# How it fails


def test_a_login_error_is_told_by_its_class_and_not_as_text() -> None:
    words = "Not logged in · Please run /login"
    reported = assistant(text(words), error="authentication_failed", is_api_error_message=True)

    assert [type(each) for each in feed(Reconciler(), reported, failed(words))] == [Activity, Failed]
    assert isinstance(error_of(reported, failed(words)), UpstreamAuthError)


@pytest.mark.parametrize("words", ["Not logged in · Please run /login", "Invalid API key · Fix external API key"])
def test_a_login_error_in_a_plain_message_is_no_text_either(words: str) -> None:
    lines = [assistant(text(words)), failed(words)]

    assert [type(each) for each in feed(Reconciler(), *lines)] == [Activity, Failed]
    assert isinstance(error_of(*lines), UpstreamAuthError)


def test_an_error_in_mid_stream_ends_what_was_said() -> None:
    said = seen(message_start(), block(), delta("part"), abandoned(), failed("API Error", api_error_status=500))

    assert said == [TextDelta("part"), (UpstreamError, "upstream failed with status 500")]


def test_the_error_of_the_message_before_counts() -> None:
    reported = assistant(text("slow down"), error="rate_limit", is_api_error_message=True)

    assert isinstance(error_of(reported, failed("slow down")), UpstreamRateLimitError)


def test_is_error_decides_and_never_the_subtype() -> None:
    assert isinstance(error_of(failed("x", subtype="success")), UpstreamError)
    assert seen(result("part", subtype="error_of_the_future")) == [*PART, Completed("stop")]


def test_the_time_of_a_limits_reset_comes_from_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    limited = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_000_060}}

    error = error_of(limited, failed("You've hit your 5-hour limit", api_error="usage_limit_reached"))

    assert (type(error), error.retry_after) == (UsageLimitError, 60.0)


def test_an_empty_error_without_a_turn_is_an_error_and_no_confirmation() -> None:
    reconciler = Reconciler()

    feed(reconciler, result("", is_error=True, num_turns=0, terminal_reason="blocking_limit"))

    assert (reconciler.done, reconciler.acks) == (True, 0)
    assert isinstance(error_of(failed("Prompt is too long", num_turns=0)), ContextLengthError)


# Exactly once


@pytest.mark.parametrize("first", [result("part"), failed("x")])
@pytest.mark.parametrize("second", [result("again"), failed("again"), *streamed("more", message_id="m9")])
def test_nothing_comes_after_the_end(first: Json, second: Json) -> None:
    reconciler = Reconciler()
    feed(reconciler, first)

    assert feed(reconciler, second) == []
    assert reconciler.done


def test_a_late_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")

    feed(Reconciler(), result("part"), *streamed("more", message_id="m2"), failed("late"))

    assert [(record.message, record.__dict__["kind"]) for record in caplog.records] == [("late_event", "result")]


def test_a_turn_is_over_with_its_own_result() -> None:
    reconciler = Reconciler()

    feed(reconciler, *streamed("part", stop_reason="max_tokens"), GO_ON)
    before = (reconciler.done, reconciler.turn_over)
    feed(reconciler, result("more"))

    assert (before, reconciler.turn_over) == ((True, False), True)


# Calls that lead nowhere


def _round(number: int, *, is_error: bool) -> list[Json]:
    """Return a message that calls one of the CLI's own tools, and the result."""
    call = tool_use(f"toolu_{number}")
    return [
        message_start(f"m{number}"),
        message_delta("tool_use"),
        message_stop(),
        assistant(call, message_id=f"m{number}"),
        user(tool_result(f"toolu_{number}") | {"is_error": is_error}),
    ]


def test_a_model_that_only_makes_calls_that_fail_is_stopped() -> None:
    fails = [line for number in range(MAX_FRUITLESS) for line in _round(number, is_error=True)]
    message = "the model called tools 20 times in a row, and every call failed"

    assert seen(*fails[:-1]) == []
    assert seen(*fails) == [(UpstreamError, message)]


def test_a_call_that_succeeds_gives_it_all_its_tries_again() -> None:
    fails = [line for number in range(MAX_FRUITLESS - 1) for line in _round(number, is_error=True)]
    succeeds = _round(50, is_error=False)
    again = [line for number in range(100, 99 + MAX_FRUITLESS) for line in _round(number, is_error=True)]

    assert seen(*fails, *succeeds, *again) == []


# What a client does not see


def test_every_line_is_a_sign_of_life() -> None:
    lines = [
        system("init"),
        system("status", status="requesting"),
        message_start(),
        event("ping"),
        event("of the future"),
        assistant(tool_use()),
        user(tool_result()),
        {"type": "tool_progress", "parent_tool_use_id": "t"},
        {"type": "of the future, too"},
        assistant(text("x"), parent_tool_use_id="t"),
    ]

    assert feed(Reconciler(), *lines) == [
        Activity("init"),
        Activity("status"),
        Activity("message_start"),
        Activity("ping"),
        Activity("of the future"),
        Activity("assistant"),
        Activity("user"),
        Activity("tool_progress"),
        Activity("of the future, too"),
        Activity("assistant"),
    ]


def test_empty_results_confirm_the_history() -> None:
    reconciler = Reconciler()

    assert feed(reconciler, system("init"), ACK, system("init"), ACK) == [
        Activity("init"),
        Activity("result"),
        Activity("init"),
        Activity("result"),
    ]
    assert (reconciler.acks, reconciler.done) == (2, False)


def test_a_command_that_the_cli_answers_itself_is_an_answer() -> None:
    said = "/help isn't available in this environment."

    assert seen(assistant(text(said)), result(said, num_turns=0)) == [TextDelta(said), TextEnd(), Completed("stop")]


# When silence means nothing


def silence(*lines: Json) -> list[bool]:
    """Return after each line whether nothing is to be expected for minutes."""
    reconciler = Reconciler()
    return [bool(feed(reconciler, line)) and reconciler.silent_by_nature for line in lines]


def test_a_running_tool_is_silent_by_nature() -> None:
    assert silence(message_start(), assistant(tool_use()), user(tool_result())) == [False, True, False]


def test_all_running_tools_have_to_end() -> None:
    calls = [assistant(tool_use("a")), assistant(tool_use("b"))]

    assert silence(*calls, user(tool_result("b")), user(tool_result("a"))) == [True, True, True, False]


def test_no_tool_runs_once_the_model_speaks_again() -> None:
    assert silence(assistant(tool_use()), message_start("m2")) == [True, False]


def test_a_tool_result_of_a_subagent_ends_no_tool() -> None:
    assert silence(assistant(tool_use()), user(tool_result(), parent_tool_use_id="t")) == [True, True]


def test_a_compaction_is_silent_by_nature_until_its_end_is_told() -> None:
    lines = [system("status", status="compacting"), system("thinking_tokens"), system("status", status=None)]

    assert silence(*lines) == [True, True, False]


# What it cost


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({}, None),
        ({"total_cost_usd": 0.25}, 0.25),
        # The total is that of all turns of the process.
        (
            {"total_cost_usd": 9.0, "model_usage_since_last_result": {"a": {"costUSD": 0.5}, "b": {"costUSD": 0.25}}},
            0.75,
        ),
        ({"total_cost_usd": 9.0, "model_usage_since_last_result": {}}, 0.0),
        ({"total_cost_usd": "much", "model_usage_since_last_result": [1]}, None),
        ({"model_usage_since_last_result": {"a": 1, "b": {"costUSD": True}, "c": {}}}, 0.0),
    ],
)
def test_the_cost_is_this_turns_and_whatever_stands_there_costs_no_answer(
    fields: dict[str, object], cost: float | None
) -> None:
    [*_, last] = feed(Reconciler(), *streamed("part"), result("part", **fields))

    assert isinstance(last, Completed)
    assert last.usage == Usage(input=3, output=5, cost_usd=cost)
