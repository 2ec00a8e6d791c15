"""An event stream is decoded as the WHATWG standard says, wherever it is cut, and its comments are seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.errors import LineTooLongError
from ocp_trio.opencode_go.sse_decoder import SseComment, SseDecoder, SseEvent, SseItem

EXAMPLES: dict[str, tuple[bytes, list[SseItem]]] = {
    "one event": (b"data: This is the first message.\n\n", [SseEvent("message", "This is the first message.")]),
    "data of two lines": (
        b"data: This is the second message, it\ndata: has two lines.\n\n",
        [SseEvent("message", "This is the second message, it\nhas two lines.")],
    ),
    "event types": (
        b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\ndata: 113411\n\n",
        [SseEvent("add", "73857293"), SseEvent("remove", "2153"), SseEvent("message", "113411")],
    ),
    "stocks": (b"data: YHOO\ndata: +2\ndata: 10\n\n", [SseEvent("message", "YHOO\n+2\n10")]),
    "a comment, ids, one leading space": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n",
        [SseComment("test stream"), SseEvent("message", "first event", "1"), SseEvent("message", "second event", "")],
    ),
    "empty data": (b"data\n\ndata\ndata\n\ndata:", [SseEvent("message", ""), SseEvent("message", "\n")]),
    "the space after the colon": (
        b"data:test\n\ndata: test\n\n",
        [SseEvent("message", "test"), SseEvent("message", "test")],
    ),
}
"""The standard's own."""

OURS: dict[str, tuple[bytes, list[SseItem]]] = {
    "line ends of all three kinds": (
        b"data: a\ndata: b\r\ndata: c\rdata: d\r\n\r\ndata: e\r\rdata: f\n\n",
        [SseEvent("message", "a\nb\nc\nd"), SseEvent("message", "e"), SseEvent("message", "f")],
    ),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [SseEvent("message", "a")]),
    "characters of several bytes": ("data: é€😀\n\n".encode(), [SseEvent("message", "é€😀")]),
    "no UTF-8": (b"data: a\xff\xe2\x82b\n\n", [SseEvent("message", "a\ufffd\ufffdb")]),
    "other fields": (b"retry: 10\nDATA: a\n data: b\nwhat ever\ndata: c\n\n", [SseEvent("message", "c")]),
    "a type without data is none": (b"event: ping\n\ndata: a\n\n", [SseEvent("message", "a")]),
    "an error": (b'event: error\ndata: {"error":1}\n\n', [SseEvent("error", '{"error":1}')]),
    "comments anywhere": (
        b": ping - 12:00\n\ndata: a\n:\ndata: b\n: end\n\n",
        [SseComment("ping - 12:00"), SseComment(""), SseComment("end"), SseEvent("message", "a\nb")],
    ),
    "an id stays": (b"id: 7\ndata: a\n\ndata: b\n\n", [SseEvent("message", "a", "7"), SseEvent("message", "b", "7")]),
    "an id with NUL is none": (b"id: 7\nid: \0\ndata: a\n\n", [SseEvent("message", "a", "7")]),
    "the last event is not complete": (b"data: a\n\ndata: b\n", [SseEvent("message", "a")]),
    "colons in data": (b"data: a: b\ndata::\n\n", [SseEvent("message", "a: b\n:")]),
}

ALL = pytest.mark.parametrize(
    ("stream", "items"), [pytest.param(*pair, id=name) for name, pair in {**EXAMPLES, **OURS}.items()]
)


def decode(*pieces: bytes) -> list[SseItem]:
    decoder = SseDecoder()
    return [item for piece in pieces for item in decoder.feed(piece)]


@ALL
def test_a_stream_means_what_the_standard_says(stream: bytes, items: list[SseItem]) -> None:
    assert decode(stream) == items


@ALL
def test_it_means_the_same_cut_in_two_anywhere(stream: bytes, items: list[SseItem]) -> None:
    for cut in range(len(stream) + 1):
        assert decode(stream[:cut], stream[cut:]) == items
        assert decode(stream[:cut], b"", stream[cut:]) == items


@ALL
def test_it_means_the_same_byte_by_byte(stream: bytes, items: list[SseItem]) -> None:
    assert decode(*(bytes([byte]) for byte in stream)) == items


@given(st.data(), st.binary(max_size=60).map(lambda noise: noise.replace(b"\x00", b"\r").replace(b"\x01", b"\n")))
def test_so_does_any_stream_cut_anyhow(data: st.DataObject, noise: bytes) -> None:
    stream = b"data: " + noise + b"\n\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert decode(*pieces) == decode(stream)


def test_an_event_is_told_as_soon_as_its_blank_line_is_here() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\n") == [SseEvent("message", "a")]
    assert decoder.feed(b"data: b\r\n\r") == [SseEvent("message", "b")]
    assert decoder.feed(b"\n") == []


def test_a_comment_is_told_as_soon_as_its_line_is() -> None:
    decoder = SseDecoder()

    assert decoder.feed(b": ping") == []
    assert decoder.feed(b"\n") == [SseComment("ping")]


@pytest.mark.parametrize("stream", [b"data: 0123456789", b"data: 01234\ndata: 56789\n", b": 01234567890\n"])
def test_what_is_too_long_is_refused(stream: bytes) -> None:
    with pytest.raises(LineTooLongError, match="longer than 9 bytes"):
        SseDecoder(max_event=9).feed(stream)
