"""Decode what the CLI prints under ``--output-format stream-json``: one JSON object per line."""

import json
from typing import TypeAlias

import msgspec

from ocp_trio.claude.control_lines import ControlRequest, ControlResponse
from ocp_trio.claude.lines import Assistant, Line, Other, RateLimitEvent, Result, StreamEvent, System, User
from ocp_trio.streaming import MAX_LINE, LineDecoder

__all__ = ["StreamJsonDecoder"]

_KNOWN: dict[str, type[Line]] = {
    str(line.__struct_config__.tag): line
    for line in (StreamEvent, Assistant, User, System, RateLimitEvent, Result, ControlRequest, ControlResponse)
}
_AnyLine: TypeAlias = (
    StreamEvent | Assistant | User | System | RateLimitEvent | Result | ControlRequest | ControlResponse
)
_decoder = msgspec.json.Decoder(_AnyLine)


class StreamJsonDecoder:
    """Incremental decoder without I/O.

    Args:
        max_line: Longest line accepted, in bytes.

    Attributes:
        odd_lines: How many lines were no object of a known shape, blank ones included. What is sound of them is kept.
    """

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._lines = LineDecoder(max_line)
        self.odd_lines = 0

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line that are held."""
        return self._lines.pending

    def feed(self, data: bytes) -> list[Line]:
        """Take the next piece of output and return the lines that it completes.

        Raises:
            LineTooLongError: a line passed ``max_line``.
        """
        whole = self._lines.feed_whole(data)
        try:
            lines: list[Line] = list(_decoder.decode_lines(whole))
        except (msgspec.DecodeError, RecursionError):
            lines = []
        # Blank lines are not decoded, and are to be counted.
        return lines if len(lines) == data.count(b"\n") else self._decode(whole[:-1].split(b"\n"))

    def flush(self) -> list[Line]:
        """Return a last line that has no line feed, if it is whole."""
        last = self._lines.flush()
        return self._decode([last]) if last else []

    def _decode(self, raw_lines: list[bytes]) -> list[Line]:
        lines: list[Line] = []
        for raw in raw_lines:
            if not raw.lstrip().startswith(b"{"):
                # A read can hold 65,536 of these: the failures of two decoders for each would hold up all streams.
                self.odd_lines += 1
                continue
            try:
                lines.append(_decoder.decode(raw))
            except (msgspec.DecodeError, RecursionError):
                lines += self._decode_odd(raw)
        return lines

    def _decode_odd(self, raw: bytes) -> list[Line]:
        """Decode a line of another type, with lone surrogates (msgspec refuses them), or with fields of other types."""
        try:
            fields = json.loads(raw.decode(errors="replace"))
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
            self.odd_lines += 1
            return []
        line = _KNOWN.get(fields["type"])
        if line is None:
            return [Other(name=fields["type"])]
        sound = {name: value for name, value in fields.items() if _is_sound(line, fields["type"], name, value)}
        self.odd_lines += len(sound) < len(fields)
        return [msgspec.convert(sound, line)]


def _is_sound(line: type[Line], tag: str, name: str, value: object) -> bool:
    try:
        msgspec.convert({"type": tag, name: value}, line)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
