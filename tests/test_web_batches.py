"""A batch comes out of its bytes as it went in, errors with all that their answer is made of."""

import pytest

from ocp_trio import errors
from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    Failed,
    Refusal,
    Started,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.errors import OcpError, StallFacts
from ocp_trio.openai.errors import error_response
from ocp_trio.web.batches import decode_batch, encode_batch

FACTS = StallFacts("idle", 120.0, 121.0, 122.5, None, 3, 400, visible_output=True, setting="CLAUDE_STALL_TIMEOUT")


@pytest.mark.parametrize(
    "batch",
    [
        (),
        (Started(), Activity("ping"), Activity("usage", Usage(1, 2, 3, 4, 5))),
        (ThinkingDelta("hm"), ThinkingEnd(), TextDelta("渐😀"), TextEnd(), Refusal("no")),
        (ToolCallStart(0, "id", "name"), ToolCallDelta(0, '{"a"'), ToolCallEnd(0)),
        (Completed("length", Usage(output=7)),),
    ],
)
def test_events_are_the_same(batch: Batch) -> None:
    assert decode_batch(encode_batch(batch)) == batch


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidRequestError("odd", code="unsupported_value", param="n"),
        errors.QueueFullError("full", retry_after=5),
        errors.QuotaExceededError("spent", retry_after=3.5, quota={"period": "daily", "limit": 1}),
        errors.UpstreamOverloadedError("busy", retry_after=None),
        errors.UpstreamStalledError(FACTS),
        errors.TotalTimeoutError(600),
        errors.LineTooLongError(1000),
        errors.ShuttingDownError("stopping"),
        errors.SettingError("NAME", object, "is odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_answered_in_the_same_way(error: OcpError) -> None:
    [told] = decode_batch(encode_batch((Failed(error),)))

    assert isinstance(told, Failed)
    assert type(told.error) is type(error)
    assert error_response(told.error) == error_response(error)
    if isinstance(told.error, errors.UpstreamStalledError):
        assert told.error.facts == FACTS


def test_an_error_that_only_another_version_knows_is_an_error_of_upstreams() -> None:
    class NewError(OcpError):
        pass

    [told] = decode_batch(encode_batch((Failed(NewError("new")),)))

    assert isinstance(told, Failed)
    assert (type(told.error), str(told.error)) == (errors.UpstreamError, "new")
