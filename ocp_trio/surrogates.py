r"""Join surrogate pairs that were split over two pieces of text.

A JSON string may end in ``\ud83d`` while the next begins with ``\ude00``: together they are one character.
"""

__all__ = ["SurrogateJoiner", "can_be_encoded", "scrub"]


class SurrogateJoiner:
    """Incremental joiner without I/O; what it returns can always be encoded."""

    def __init__(self) -> None:
        self._high = ""

    def join(self, text: str) -> str:
        """Return ``text`` with pairs joined, a trailing high surrogate held back, and lone ones as U+FFFD."""
        if not self._high and can_be_encoded(text):
            return text
        text = self._high + text
        self._high = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._high = text[:-1], text[-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def flush(self) -> str:
        """Return U+FFFD if a high surrogate was left alone at the end; else nothing."""
        held, self._high = self._high, ""
        return "\N{REPLACEMENT CHARACTER}" if held else ""


def can_be_encoded(text: str) -> bool:
    """Whether a text holds no surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def scrub(text: str) -> str:
    """Return a whole text with pairs joined and lone surrogates as U+FFFD."""
    joiner = SurrogateJoiner()
    return joiner.join(text) + joiner.flush()
