"""The fake CLI prints what the real one printed: the same lines, in the same order, with the same keys."""

import json
from pathlib import Path
from typing import Any

import captures
import pytest
from fake_driver import run, shapes, user
from fake_program import install
from fake_script import (
    Step,
    abandon,
    api_error,
    block_end,
    block_start,
    error_result,
    failed_result,
    input_json,
    message_end,
    message_start,
    own_user_message,
    ping,
    prompt,
    rate_limit,
    retry,
    success,
    synthetic,
    text,
    thinking,
    tool_call,
    tool_progress,
    tool_result,
    whole_message,
)

PLAIN = [text(*"0123456789"), success()]
PART = text(*"012345")
RATE_LIMITED: dict[str, Any] = {"error": "rate_limit", "status": 429, "api_error_type": "rate_limit_error"}
LIMIT: dict[str, Any] = {"resetsAt": 1_800_000_000, "rateLimitType": "five_hour"}
FIVE_HOURS = {"five_hour": {"utilization": 0.9, "resetsAt": 1_800_000_000, "status": "allowed_warning"}}
USAGE_LIMIT = {"rate_limit_info": {"status": "rejected", "isUsingOverage": False, **LIMIT}}
RUN = {"command": "echo x", "description": "d"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


SCRIPTS: dict[str, list[Step]] = {
    "01-plain-partial-lean": PLAIN,
    "02-thinking-partial": [thinking(*"012345"), text(*"0123"), success()],
    "02-thinking-redacted-partial": [block_start("redacted_thinking"), text("a"), success()],
    "03-two-tools-partial": [
        *[block_start("tool_use", "Bash"), input_json(json.dumps(RUN)), block_end()] * 2,
        tool_result("one"),
        tool_result("two"),
        text("a", "b"),
        success(),
    ],
    "03-tool-bash-sleep-blocked-partial": [
        text(*"0123"),
        tool_call("Bash", command="sleep 40;echo done", description="Run a test command"),
        tool_result("blocked", is_error=True, early=True),
        message_end("tool_use", 55),
        text(*"012"),
        success(),
    ],
    "04-slow_ping-20s": [block_start("text"), ping(), ping(), text(*"0123"), success()],
    "04-stall-mid-default-env": [PART, abandon(), whole_message("all"), success()],
    "05-drop-rst-once": [PART, abandon(), retry(), text("all"), success()],
    "05-env-401-max_retries2": [
        retry(1, status=401),
        retry(2, status=401),
        api_error("no", error="authentication_failed", status=401, api_error_type="authentication_error"),
    ],
    "05-env-connrefused-max_retries1": [retry(), api_error("no", error="server_error", api_error="connection_failed")],
    "05-env-err-mid-no-nonstreaming-fallback-once": [
        PART,
        synthetic("no", error="unknown", status=529, api_error_type="overloaded_error"),
        abandon(for_good=True),
        failed_result("no", status=529, api_error_type="overloaded_error"),
    ],
    "05-err-429-always": [*[retry(n, status=429) for n in range(10)], api_error("no", **RATE_LIMITED)],
    "05-err-529-always": [
        retry(1, status=529, error="overloaded"),
        retry(2, status=529, error="overloaded"),
        api_error("no", error="server_error", status=529, api_error_type="overloaded_error"),
    ],
    "05-err-mid-empty-once": [message_start(), abandon(), text("all"), success()],
    "07-empty-content": [
        message_start(),
        message_end(output_tokens=1),
        own_user_message("go on"),
        message_start(),
        message_end(output_tokens=1),
        success(),
    ],
    "07-max-turns-1-partial": [
        text(*"0123"),
        tool_call("Bash", command="echo x", description="Run a test command"),
        tool_result("x"),
        error_result("error_max_turns", terminal_reason="max_turns"),
    ],
    "07-stop-max_tokens-once": [
        text(*"0123"),
        message_end("max_tokens", 32),
        own_user_message("go on"),
        text("more"),
        success(),
    ],
    "07-stop-stop_sequence": [text(*"0123"), message_end("stop_sequence", 32), success()],
    "12-made-up-oauth-ratelimit-rejected": [
        rate_limit(**LIMIT),
        synthetic("no", **RATE_LIMITED, api_error="usage_limit_reached", api_error_params=USAGE_LIMIT),
        failed_result("no", status=429, api_error="usage_limit_reached", api_error_type="rate_limit_error"),
    ],
    "12-made-up-oauth-ratelimit-warning": [
        *[text(*"0123456789"), message_end()],
        rate_limit("allowed_warning", **LIMIT, utilization=0.9, unifiedWindows=FIVE_HOURS),
        success(),
    ],
    "12-no-credentials": [api_error("no", error="authentication_failed")],
}


RESULT_FIELDS = (
    "subtype",
    "is_error",
    "num_turns",
    "stop_reason",
    "terminal_reason",
    "api_error_status",
    "api_error",
    "usage",
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_turn_has_the_lines_and_the_result_of_the_capture(name: str, program: Path) -> None:
    played = run(program, user(prompt(*SCRIPTS[name])))

    # The init line of a child with slash commands has one key more.
    assert shapes(played.stdout)[1:] == shapes(captures.stdout(name))[1:]
    ours, real = (json.loads(output.splitlines()[-1]) for output in (played.stdout, captures.stdout(name)))
    assert [ours.get(key) for key in RESULT_FIELDS] == [real.get(key) for key in RESULT_FIELDS]
    assert (played.returncode, played.stderr) == (captures.meta(name)["exit_code"], b"")


def test_the_init_line_has_the_keys_of_the_capture(program: Path) -> None:
    assert shapes(run(program, user("hi")).stdout)[0] == shapes(captures.stdout("01-plain-partial-lean"))[0]


def test_a_message_without_a_script_is_answered_ok(program: Path) -> None:
    *_, result = run(program, user("hi")).stdout.splitlines()

    assert json.loads(result)["result"] == "ok"


def test_a_surrogate_pair_split_over_two_deltas_is_printed_as_two_escapes(program: Path) -> None:
    played = run(program, user(prompt(text("\ud83d", "\ude00"), success())))

    real = captures.stdout("06-surrogate-split")
    for half in (rb'"text":"\ud83d"', rb'"text":"\ude00"'):
        assert half in real
        assert half in played.stdout
    assert json.loads(played.stdout.splitlines()[-1])["result"] == "\N{GRINNING FACE}"


def test_a_tool_heartbeat_has_the_keys_of_the_capture(program: Path) -> None:
    played = run(program, user(prompt(tool_progress(30))))

    heartbeats = [shape for shape in shapes(captures.stdout("03-tool-bash-40s-partial")) if shape[0] == "tool_progress"]
    assert shapes(played.stdout)[2:] == heartbeats
