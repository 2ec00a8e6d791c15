"""An error that the CLI reports becomes one that a client can act on, without the CLI's own words."""

import pytest

from ocp_trio.claude.lines import Result
from ocp_trio.claude.outcome import USAGE_LIMIT_RETRY, classify, is_notice
from ocp_trio.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
    UsageLimitError,
)

EPOCH = "Claude AI usage limit reached|1000007200"


@pytest.mark.parametrize(
    ("error", "fields", "expected"),
    [
        ("authentication_failed", {}, UpstreamAuthError),
        (None, {"api_error_status": 401}, UpstreamAuthError),
        (None, {"api_error_status": 403}, UpstreamAuthError),
        (None, {"result": "Not logged in · Please run /login"}, UpstreamAuthError),
        (None, {"result": "Invalid API key · Fix external API key"}, UpstreamAuthError),
        (None, {"result": "OAuth token has expired"}, UpstreamAuthError),
        ("rate_limit", {"api_error": "usage_limit_reached", "api_error_status": 429}, UsageLimitError),
        ("billing_error", {}, UsageLimitError),
        (None, {"api_error_status": 402}, UsageLimitError),
        (None, {"result": EPOCH}, UsageLimitError),
        ("rate_limit", {"result": "You've hit your limit · resets 2:10pm (Europe/Paris)"}, UsageLimitError),
        ("rate_limit", {"result": "You've hit your 5-hour limit · resets 8am (UTC)"}, UsageLimitError),
        (None, {"result": "Credit balance is too low"}, UsageLimitError),
        ("invalid_request", {"terminal_reason": "prompt_too_long", "api_error_status": 400}, ContextLengthError),
        (None, {"terminal_reason": "blocking_limit"}, ContextLengthError),
        (None, {"result": "Prompt is too long"}, ContextLengthError),
        ("model_not_found", {}, ModelNotFoundError),
        (None, {"api_error_status": 404}, ModelNotFoundError),
        ("overloaded", {}, UpstreamOverloadedError),
        ("server_error", {"api_error_status": 529}, UpstreamOverloadedError),
        ("rate_limit", {"api_error_status": 429}, UpstreamRateLimitError),
        ("unknown", {"api_error_status": 400}, InvalidRequestError),
        ("invalid_request", {"api_error_status": 413}, InvalidRequestError),
        ("server_error", {"api_error_status": 500}, UpstreamError),
        ("unknown", {"api_error": "connection_failed"}, UpstreamError),
        (None, {"subtype": "error_during_execution", "terminal_reason": "aborted_streaming"}, UpstreamError),
        (None, {}, UpstreamError),
    ],
)
def test_each_report_has_its_class(error: str | None, fields: dict[str, object], expected: type[OcpError]) -> None:
    result = Result(is_error=True, **fields)  # type: ignore[arg-type]  # parametrised

    assert type(classify(result, error, None)) is expected


def test_an_unknown_failure_names_its_status() -> None:
    assert str(classify(Result(is_error=True, api_error_status=503), None, None)) == "upstream failed with status 503"
    assert str(classify(Result(is_error=True), None, None)) == "upstream failed"


@pytest.mark.parametrize("error", ["authentication_failed", "rate_limit", "invalid_request", "unknown", "overloaded"])
def test_nothing_of_the_clis_own_words_is_passed_on(error: str) -> None:
    words = "ENOENT: no such file, open '/home/user/.claude/.credentials.json' (sk-secret)"

    message = str(classify(Result(is_error=True, result=words, api_error_status=418), error, None))

    assert not any(word in message for word in ("ENOENT", "/home", ".claude/", "secret"))


@pytest.mark.parametrize(
    ("text", "resets_at", "seconds"),
    [
        (EPOCH, None, 7200.0),
        (EPOCH, 1_000_000_060.0, 7200.0),
        ("You've hit your limit", 1_000_000_060.0, 60.0),
        ("You've hit your limit", 999_999_999.0, 1.0),
        ("You've hit your limit · resets 2:10pm (Europe/Paris)", None, USAGE_LIMIT_RETRY),
    ],
)
def test_a_spent_limit_says_when_to_try_again(
    monkeypatch: pytest.MonkeyPatch, text: str, resets_at: float | None, seconds: float
) -> None:
    monkeypatch.setattr("time.time", lambda: 1_000_000_000.0)

    assert classify(Result(is_error=True, result=text), None, resets_at).retry_after == seconds


def test_a_rate_limit_names_no_time_that_nobody_told() -> None:
    assert classify(Result(is_error=True, api_error_status=429), "rate_limit", 1_000_000_060.0).retry_after is None


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("Not logged in · Please run /login", True),
        ("Invalid API key · Fix external API key", True),
        (EPOCH, True),
        ("You've hit your 5-hour limit · resets 8am", True),
        ("The loginctl command lists sessions.", False),
        ("Here is how /login works: " + "x" * 300, False),
        ("", False),
    ],
)
def test_a_short_text_in_the_clis_own_words_is_a_notice(text: str, notice: bool) -> None:
    assert is_notice(text) is notice
