"""End a text at the first of its stop sequences, however it is cut into deltas."""

from collections.abc import Iterable

__all__ = ["StopFilter"]


class StopFilter:
    """Filter of one text, without I/O; what may be the beginning of a stop sequence is held back.

    The sequence that is complete first counts; where several are complete at the same character, the longest does.

    Args:
        stops: The sequences; an empty one would end every text before it begins.

    Attributes:
        hit: Whether a stop sequence was found; whatever is fed then comes to nothing.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self.hit = False
        self._stops = tuple(stops)
        self._longest = max(map(len, self._stops))
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece and return what may be said now."""
        if self.hit:
            return ""
        text = self._held + text
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        if found:
            self.hit, self._held = True, ""
            return text[: min(found)[1]]
        said = len(text) - self._length_to_hold(text)
        self._held = text[said:]
        return text[:said]

    def flush(self) -> str:
        """Return what was held back: no stop sequence has come of it."""
        held, self._held = self._held, ""
        return held

    def _length_to_hold(self, text: str) -> int:
        """Return the length of the longest end of ``text`` that begins a stop sequence."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            end = text[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0
