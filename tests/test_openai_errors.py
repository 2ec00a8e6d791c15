"""Every error has one status, one type and one code, and never says more than it should."""

import inspect
import json

import pytest

from ocp_trio import errors
from ocp_trio.errors import OcpError, StallFacts
from ocp_trio.openai.errors import DEFAULT_RETRY_AFTER, ErrorObject, encode_error, error_object, error_response

STALL = StallFacts("idle", 120, 120, 121, "text_delta", 3, 99, True, "OPENCODE_GO_IDLE_TIMEOUT")

TABLE = [
    (errors.InvalidRequestError("m", code="invalid_json"), 400, "invalid_request_error", "invalid_json"),
    (errors.InvalidRequestError("m"), 400, "invalid_request_error", "invalid_type"),
    (errors.ContextLengthError("m"), 400, "invalid_request_error", "context_length_exceeded"),
    (errors.InvalidApiKeyError("m"), 401, "invalid_request_error", "invalid_api_key"),
    (errors.StoreUnavailableError("m"), 503, "server_error", "store_unavailable"),
    (errors.UpstreamAuthError("m"), 401, "authentication_error", "upstream_auth"),
    (errors.PermissionDeniedError("m"), 403, "permission_error", "insufficient_permissions"),
    (errors.ModelNotFoundError("m"), 404, "invalid_request_error", "model_not_found"),
    (errors.NotFoundError("m"), 404, "invalid_request_error", "not_found"),
    (errors.MethodNotAllowedError("m", allow="POST"), 405, "invalid_request_error", "method_not_allowed"),
    (errors.RequestTimeoutError("m"), 408, "invalid_request_error", "request_timeout"),
    (errors.RequestTooLargeError("m"), 413, "invalid_request_error", "request_too_large"),
    (errors.QueueFullError("m", retry_after=1), 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.UpstreamRateLimitError("m"), 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.QuotaExceededError("m", retry_after=1), 429, "rate_limit_error", "insufficient_quota"),
    (errors.UsageLimitError("m"), 429, "rate_limit_error", "insufficient_quota"),
    (errors.RequestCancelledError("m"), 499, "cancelled_error", "cancelled"),
    (errors.InternalError("m"), 500, "server_error", "internal_error"),
    (errors.UpstreamError("m"), 502, "server_error", "upstream_error"),
    (errors.LineTooLongError(5), 502, "server_error", "upstream_error"),
    (errors.UpstreamIncompleteError("m"), 502, "server_error", "upstream_incomplete"),
    (errors.BackendUnavailableError("m"), 503, "server_error", "backend_unavailable"),
    (errors.ChildSpawnError("m"), 503, "server_error", "backend_unavailable"),
    (errors.UpstreamOverloadedError("m"), 503, "server_error", "overloaded"),
    (errors.ShuttingDownError("m"), 503, "server_error", "shutting_down"),
    (errors.TotalTimeoutError(600), 504, "timeout_error", "timeout"),
    (errors.UpstreamStalledError(STALL), 504, "timeout_error", "stalled"),
]


def name(value: object) -> str:
    return type(value).__name__ if isinstance(value, OcpError) else str(value)


def header(error: OcpError, name: str) -> str | None:
    return dict(error_response(error).headers).get(name)


@pytest.mark.parametrize(("error", "status", "kind", "code"), TABLE, ids=name)
def test_each_error_has_its_status_type_and_code(error: OcpError, status: int, kind: str, code: str) -> None:
    response = error_response(error)

    assert (response.status, error_object(error).type, error_object(error).code) == (status, kind, code)


def test_every_error_that_can_reach_a_client_is_in_the_table_above() -> None:
    tree = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, OcpError)}
    # The bases are not raised, and a wrong setting stops the start.
    never = {errors.OcpError, errors.ClientError, errors.OperatorError, errors.SettingError}

    assert {type(row[0]) for row in TABLE} == tree - never


def test_a_class_that_is_not_in_the_table_is_reported_as_its_nearest_base() -> None:
    class TlsError(errors.UpstreamIncompleteError):
        pass

    class OddError(OcpError):
        pass

    assert error_object(TlsError("m")).code == "upstream_incomplete"
    assert error_response(OddError("m")).status == 500


def test_the_body_holds_all_four_keys() -> None:
    response = error_response(errors.InvalidRequestError("no model", code="missing_required_parameter", param="model"))

    assert json.loads(response.body) == {
        "error": {
            "message": "no model",
            "type": "invalid_request_error",
            "param": "model",
            "code": "missing_required_parameter",
        }
    }
    assert dict(response.headers) == {"content-type": "application/json"}


def test_what_is_not_known_is_null() -> None:
    assert encode_error(ErrorObject("m", "server_error", None, None)) == (
        b'{"error":{"message":"m","type":"server_error","param":null,"code":null}}'
    )


def test_an_error_without_words_is_named_by_its_code() -> None:
    assert error_object(errors.InternalError()).message == "internal_error"


@pytest.mark.parametrize("error", [row[0] for row in TABLE], ids=name)
def test_a_time_to_retry_comes_with_every_429_and_503_and_with_nothing_else(error: OcpError) -> None:
    assert (header(error, "retry-after") is not None) == (error_response(error).status in {429, 503})


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [(None, DEFAULT_RETRY_AFTER), (0, 1), (0.2, 1), (-3, 1), (1, 1), (1.2, 2), (7200, 7200), (1e300, 7 * 86400)],
)
def test_the_time_to_retry_is_whole_seconds_rounded_up(retry_after: float | None, seconds: float) -> None:
    assert header(errors.UsageLimitError("m", retry_after=retry_after), "retry-after") == str(int(seconds))


@pytest.mark.parametrize("error", [row[0] for row in TABLE], ids=name)
def test_a_retry_is_advised_against_where_it_would_only_run_the_prompt_again(error: OcpError) -> None:
    futile = {"upstream_auth", "insufficient_quota", "timeout", "stalled", "cancelled"}

    assert header(error, "x-should-retry") == ("false" if error_object(error).code in futile else None)


def test_a_missing_key_is_told_how_to_authenticate() -> None:
    assert header(errors.InvalidApiKeyError("m"), "www-authenticate") == "Bearer"
    assert header(errors.UpstreamAuthError("m"), "www-authenticate") is None


def test_a_wrong_method_is_told_the_right_ones() -> None:
    assert header(errors.MethodNotAllowedError("m", allow="GET, HEAD"), "allow") == "GET, HEAD"
