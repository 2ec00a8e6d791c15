"""Frames of an event stream are read alike by every client."""

import pytest
from openai._streaming import SSEDecoder

from ocp_trio.openai import sse


def decode(*frames: bytes) -> list[str]:
    return [event.data for event in SSEDecoder().iter_bytes(iter(frames))]


def test_a_payload_becomes_one_event() -> None:
    assert sse.data(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert decode(sse.data(b'{"a":1}')) == ['{"a":1}']


def test_the_last_frame_says_done() -> None:
    assert sse.data(b"[DONE]") == sse.DONE


@pytest.mark.parametrize("heartbeat", [sse.COMMENT, sse.COMMENT_LINE])
def test_a_comment_is_no_event(heartbeat: bytes) -> None:
    assert decode(heartbeat, heartbeat, sse.data(b"1"), heartbeat, sse.DONE) == ["1", "[DONE]"]


@pytest.mark.parametrize("frame", [sse.COMMENT, sse.COMMENT_LINE, sse.DONE, sse.data(b"1")])
def test_lines_end_in_a_line_feed_alone(frame: bytes) -> None:
    assert frame.endswith(b"\n")
    assert b"\r" not in frame


def test_a_comment_line_opens_no_block() -> None:
    assert b"\n\n" not in sse.COMMENT_LINE


def test_the_headers_keep_proxies_from_holding_a_stream_back() -> None:
    assert dict(sse.STREAM_HEADERS) == {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
