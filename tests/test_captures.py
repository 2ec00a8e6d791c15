"""The decoder makes of every capture of the real CLI what a client should see of it."""

from collections.abc import Iterable
from itertools import pairwise
from typing import get_args

import captures
import pytest
from capture_table import EXPECTED, Expected, Failure
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.claude.reconcile import Reconciler
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.completion import Activity, Batch, Completed, Event, Failed, TextDelta, ThinkingDelta
from ocp_trio.errors import (
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamIncompleteError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
    UsageLimitError,
)

FAILURES: dict[type[OcpError], Failure] = {
    UpstreamAuthError: "auth",
    UpstreamRateLimitError: "rate_limit",
    UsageLimitError: "usage_limit",
    UpstreamOverloadedError: "overloaded",
    ContextLengthError: "context",
    ModelNotFoundError: "model",
    InvalidRequestError: "invalid",
    UpstreamError: "server",
    UpstreamIncompleteError: "incomplete",
}
INTERESTING = (
    "02-thinking-partial",
    "05-err-mid-empty-once",
    "06-surrogate-split",
    "07-stop-max_tokens-once",
    "12-no-credentials",
)


def decode(*pieces: bytes) -> tuple[list[Event], int]:
    """Return the events of an output that ends after ``pieces``, and how many messages of history it confirmed."""
    decoder, reconciler = StreamJsonDecoder(), Reconciler()
    batches: list[Batch] = [reconciler.feed(decoder.feed(piece)) for piece in pieces]
    batches.append(reconciler.feed(decoder.flush()))
    events = [event for batch in batches for event in batch]
    if not reconciler.done:
        events.append(Failed(UpstreamIncompleteError("the output ended")))
    return events, reconciler.acks


def seen_by_a_client(output: bytes) -> Expected:
    """Return the answer in the words of the table."""
    events, acks = decode(output)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thinking = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    match events[-1]:
        case Completed(finish_reason, usage):
            tokens = (usage.input, usage.output, usage.cache_read, usage.cache_write)
            return Expected(text, thinking, finish_reason, None, tokens, acks)
        case Failed(error):
            restarted = str(error).startswith("upstream broke off")
            return Expected(text, thinking, None, "restart" if restarted else FAILURES[type(error)], None, acks)
    raise AssertionError(events[-1])


def same(events: Iterable[Event]) -> list[object]:
    """Return events in a form that compares: errors are equal only to themselves."""
    return [(type(event.error), str(event.error)) if isinstance(event, Failed) else event for event in events]


def cut(output: bytes, *places: int) -> list[bytes]:
    return [output[begin:end] for begin, end in pairwise((0, *sorted(places), len(output)))]


@pytest.mark.parametrize("name", captures.names())
def test_a_client_sees_the_answer(name: str) -> None:
    assert seen_by_a_client(captures.stdout(name)) == EXPECTED[name]


def test_every_kind_of_failure_occurs() -> None:
    assert {expected.error for expected in EXPECTED.values()} - {None} == set(get_args(Failure))


def test_the_table_knows_every_capture() -> None:
    assert set(EXPECTED) == set(captures.names())


def test_every_line_is_of_a_known_shape() -> None:
    decoder = StreamJsonDecoder()

    for name in captures.names():
        decoder.feed(captures.stdout(name))

    assert decoder.odd_lines == 0


def test_exactly_one_terminal_event_comes_and_it_is_the_last() -> None:
    for name in captures.names():
        events, _ = decode(captures.stdout(name))
        assert [isinstance(event, Completed | Failed) for event in events] == [False] * (len(events) - 1) + [True]


@pytest.mark.parametrize("name", INTERESTING)
def test_output_may_come_byte_by_byte(name: str) -> None:
    output = captures.stdout(name)

    assert same(decode(*(output[at : at + 1] for at in range(len(output))))[0]) == same(decode(output)[0])


@pytest.mark.parametrize("name", ["06-surrogate-split", "12-no-credentials"])
def test_output_may_be_cut_anywhere(name: str) -> None:
    output = captures.stdout(name)
    whole = same(decode(output)[0])

    assert all(same(decode(*cut(output, at))[0]) == whole for at in range(len(output)))


@given(st.sampled_from(captures.names()), st.data())
def test_output_may_be_cut_at_any_points(name: str, data: st.DataObject) -> None:
    output = captures.stdout(name)
    places = data.draw(st.lists(st.integers(0, len(output)), max_size=20))

    assert same(decode(*cut(output, *places))[0]) == same(decode(output)[0])


NOISE = st.sampled_from(
    [
        b"npm WARN deprecated x@1.0.0",
        b"[]",
        b"{}",
        b"5",
        b"null",
        b'"text"',
        b"",
        b" \t",
        b"\xff\xfe\x00",
        b'{"type":5}',
        b'{"type":"future","payload":{"deep":[1,{"x":null}]}}',
        b'{"type":"system","subtype":"future"}',
        b'{"type":"stream_event","event":{"type":"future","index":7}}',
        b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":5}}}',
        b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"future_delta"}}}',
        b'{"type":"assistant","parent_tool_use_id":"t","message":{"id":"m","content":[{"type":"text","text":"sub"}]}}',
        b'{"type":"result","subtype":"success","num_turns":0,"result":""}',
        b'{"type":"x","y":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ]
)


@given(st.sampled_from(captures.names()), st.data())
def test_noise_between_the_lines_changes_nothing_that_a_client_sees(name: str, data: st.DataObject) -> None:
    lines = captures.stdout(name).splitlines(keepends=True)
    for place in sorted(data.draw(st.lists(st.integers(0, len(lines)), max_size=10)), reverse=True):
        lines.insert(place, data.draw(NOISE) + b"\n")

    noisy = [event for event in decode(*lines)[0] if not isinstance(event, Activity)]

    assert same(noisy) == same([e for e in decode(captures.stdout(name))[0] if not isinstance(e, Activity)])


@given(st.sampled_from(captures.names()), st.data())
def test_aggregates_and_results_may_come_twice(name: str, data: st.DataObject) -> None:
    lines = captures.stdout(name).splitlines(keepends=True)
    repeated = [line * 2 if b'"type":"assistant"' in line or _ends(line) else line for line in lines]
    chosen = [data.draw(st.sampled_from(pair)) for pair in zip(lines, repeated, strict=True)]

    assert _visible(decode(*chosen)[0]) == _visible(decode(*lines)[0])


def _ends(line: bytes) -> bool:
    return b'"type":"result"' in line and b'"num_turns":0' not in line


def _visible(events: list[Event]) -> list[object]:
    return same([event for event in events if not isinstance(event, Activity)])
