"""Cut a byte stream into lines, in linear time and bounded memory."""

from ocp_trio.errors import LineTooLongError

__all__ = ["MAX_LINE", "LineDecoder"]

MAX_LINE = 32 * 2**20
"""Bytes of the longest line accepted by default: an image in an answer fits, a runaway child does not."""


class LineDecoder:
    """Incremental decoder of lines that end in a line feed, without I/O.

    Args:
        max_line: Longest line accepted, in bytes, its line feed not counted.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line that are held."""
        return self._size

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next piece of the stream and return the lines it completes, without their line feeds.

        Raises:
            LineTooLongError: a line passed ``max_line``; the decoder is of no further use.
        """
        whole = self.feed_whole(data)
        return whole[:-1].split(b"\n") if whole else []

    def feed_whole(self, data: bytes) -> bytes:
        """Take the next piece of the stream and return the lines it completes in one piece, with their line feeds.

        Raises:
            LineTooLongError: a line passed ``max_line``; the decoder is of no further use.
        """
        end = data.rfind(b"\n") + 1
        # Only the first line began before this piece.
        too_long = end > 0 and self._size + data.find(b"\n") > self._max_line
        whole, rest = data[:end], data[end:]
        if whole and self._parts:
            whole = b"".join((*self._parts, whole))
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if len(data) > self._max_line:
            too_long = too_long or any(len(line) > self._max_line for line in data[:end].split(b"\n"))
        if too_long or self._size > self._max_line:
            raise LineTooLongError(self._max_line)
        return whole

    def flush(self) -> bytes | None:
        """Return what stands after the last line feed at the end of the stream; None if nothing does."""
        last = b"".join(self._parts)
        self._parts, self._size = [], 0
        return last or None
