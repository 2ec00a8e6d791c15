"""Decode an event stream (WHATWG's ``text/event-stream``) from bytes, with its comments: they are a sign of life."""

from typing import NamedTuple, TypeAlias

from ocp_trio.errors import LineTooLongError
from ocp_trio.streaming import MAX_LINE, LineDecoder

__all__ = ["SseComment", "SseDecoder", "SseEvent", "SseItem"]

BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """An event; ``id`` is the last one that the stream has set."""

    event: str
    data: str
    id: str = ""


class SseComment(NamedTuple):
    """A line that means nothing but that somebody is there."""

    text: str


SseItem: TypeAlias = SseEvent | SseComment


class SseDecoder:
    """Incremental decoder without I/O, in linear time and bounded memory.

    It needs no flush: what stands after the last blank line at the end of a stream is, by the standard, no event.
    Reconnection times are not kept, as nothing reconnects.

    Args:
        max_event: Longest line, and longest data of one event, in bytes.
    """

    def __init__(self, max_event: int = MAX_LINE) -> None:
        self._max_event = max_event
        self._lines = LineDecoder(max_event)
        self._after_cr = False
        self._at_start = True
        self._event = self._id = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[SseItem]:
        """Take the next piece of the stream and return what it completes.

        Raises:
            LineTooLongError: an event passed ``max_event``; the decoder is of no further use.
        """
        if self._after_cr and data:
            # The second half of a CR LF that was cut in two.
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        items: list[SseItem] = []
        for line in self._lines.feed(data):
            if self._at_start:
                self._at_start = False
                line = line.removeprefix(BOM)  # noqa: PLW2901 (the mark is no part of the line)
            if line:
                self._take(line, items)
            else:
                self._dispatch(items)
        return items

    def _take(self, line: bytes, items: list[SseItem]) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
            if self._size > self._max_event:
                raise LineTooLongError(self._max_event)
        elif name == b"event":
            self._event = _text(value)
        elif name == b"id" and b"\0" not in value:
            self._id = _text(value)
        elif not name:
            items.append(SseComment(_text(value)))

    def _dispatch(self, items: list[SseItem]) -> None:
        if self._data:
            items.append(SseEvent(self._event or "message", _text(b"\n".join(self._data)), self._id))
            self._data, self._size = [], 0
        self._event = ""


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
