"""What the provider reports becomes an error of ours, and nothing of its pages reaches a client."""

import json
import time
from email.utils import formatdate

import pytest

from ocp_trio.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    RequestTooLargeError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
    UsageLimitError,
)
from ocp_trio.openai.errors import error_response
from ocp_trio.opencode_go.errors import Report, classify, parse_report, retry_after

PAGE = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>"


def report(kind: str | None = None, message: str = "", code: str | None = None) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, "code": code}}).encode()


CASES: list[tuple[int, bytes, type[OcpError]]] = [
    (401, report("AuthError", "Invalid API key."), UpstreamAuthError),
    (401, PAGE, UpstreamAuthError),
    (403, report("permission_error"), UpstreamAuthError),
    (403, report("whatever"), UpstreamAuthError),
    (403, PAGE, UpstreamError),
    (401, report("CreditsError", "No payment method. Add one here: https://opencode.ai/workspace/w"), UsageLimitError),
    (401, report("ModelError", "Model x is not supported"), ModelNotFoundError),
    (402, report("unknown_error", "Insufficient Balance", "invalid_request_error"), UsageLimitError),
    (402, PAGE, UsageLimitError),
    (429, report("GoUsageLimitError", "Weekly usage limit reached. It will reset in 5 days."), UsageLimitError),
    (429, report("rate_limit_error", "5-hour usage limit reached"), UsageLimitError),
    (429, report("rate_limit_error", "slow down", "provider_rate_limit_exceeded"), UpstreamRateLimitError),
    (429, PAGE, UpstreamRateLimitError),
    (404, report("not_found_error", "no such model"), ModelNotFoundError),
    (404, PAGE, ModelNotFoundError),
    (400, report("invalid_request_error", "max_tokens is too large"), InvalidRequestError),
    (422, report(None, "unprocessable"), InvalidRequestError),
    (400, report("invalid_request_error", "This model's maximum context length is 10"), ContextLengthError),
    (400, report("invalid_request_error", "too long", "context_length_exceeded"), ContextLengthError),
    (413, PAGE, RequestTooLargeError),
    (400, report(None, "Output data may be odd", "data_inspection_failed"), UpstreamOverloadedError),
    (500, report("server_error", "context length unknown"), UpstreamError),
    (500, PAGE, UpstreamError),
    (502, PAGE, UpstreamError),
    (504, PAGE, UpstreamError),
    (503, PAGE, UpstreamOverloadedError),
    (529, report("overloaded_error"), UpstreamOverloadedError),
    (500, report("overloaded_error"), UpstreamOverloadedError),
    (418, PAGE, UpstreamError),
]


@pytest.mark.parametrize(("status", "body", "kind"), CASES)
def test_a_refusal_becomes_the_error_that_it_means(status: int, body: bytes, kind: type[OcpError]) -> None:
    error = classify(parse_report(body), status=status)

    assert type(error) is kind
    assert "html" not in str(error).lower()
    assert "workspace" not in str(error)


STATUSES = {
    UpstreamAuthError: (401, "upstream_auth"),
    UsageLimitError: (429, "insufficient_quota"),
    UpstreamRateLimitError: (429, "rate_limit_exceeded"),
    ModelNotFoundError: (404, "model_not_found"),
    ContextLengthError: (400, "context_length_exceeded"),
    UpstreamOverloadedError: (503, "overloaded"),
    UpstreamError: (502, "upstream_error"),
}


@pytest.mark.parametrize(("status", "body", "kind"), [case for case in CASES if case[2] in STATUSES])
def test_a_client_sees_it_with_the_status_of_the_one_table(status: int, body: bytes, kind: type[OcpError]) -> None:
    response = error_response(classify(parse_report(body), status=status))

    assert (response.status, json.loads(response.body)["error"]["code"]) == STATUSES[kind]


def test_the_message_of_a_bad_request_is_kept() -> None:
    error = classify(parse_report(report(None, "temperature: only 1\n is allowed")), status=400)

    assert str(error) == "upstream refused the request: temperature: only 1 is allowed"


@pytest.mark.parametrize("message", ["", "   ", "<HTML><body>no</body>"])
def test_unless_it_says_nothing(message: str) -> None:
    error = classify(parse_report(report(None, message)), status=400)

    assert str(error) == "upstream refused the request as invalid"


def test_a_long_one_is_cut_and_the_key_never_stands_in_it() -> None:
    secret = "key-1234"
    error = classify(Report(message=f"{secret} is odd " + "a" * 10_000), status=400, secret=secret)

    assert secret not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("body", "words", "message"),
    [
        (b'{"error":{"type":"A","code":"B","message":"m"}}', {"a", "b"}, "m"),
        (b'{"type":"error","error":{"type":"A"}}', {"a"}, ""),
        (b'{"error":"m"}', set(), "m"),
        (b'{"code":"C","message":"m","request_id":"r"}', {"c"}, "m"),
        (b'{"error":{"code":429,"message":["m"]}}', {"429"}, ""),
    ],
)
def test_an_error_object_is_read_in_any_of_the_usual_shapes(body: bytes, words: set[str], message: str) -> None:
    assert parse_report(body) == Report(frozenset(words), message)


@pytest.mark.parametrize("body", [PAGE, b"", b"[]", b"7", b'{"choices":[]}', b'{"error":7}', b"[" * 10_000, b"\xff"])
def test_anything_else_is_none(body: bytes) -> None:
    assert parse_report(body) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_it_may_be_a_date() -> None:
    seconds = retry_after({"retry-after": formatdate(time.time() + 100, usegmt=True)})

    assert seconds is not None
    assert 90 < seconds <= 100
    assert retry_after({"retry-after": formatdate(0, usegmt=True)}) == 0


@pytest.mark.parametrize("kind", ["rate_limit_error", "GoUsageLimitError", "overloaded_error"])
def test_it_reaches_the_client(kind: str) -> None:
    error = classify(parse_report(report(kind)), status=429, retry_after=51_105)

    assert error.retry_after == 51_105
    assert ("retry-after", "51105") in error_response(error).headers


def test_a_spent_limit_that_names_no_time_asks_for_an_hour() -> None:
    assert classify(parse_report(report("GoUsageLimitError")), status=429).retry_after == 3600
