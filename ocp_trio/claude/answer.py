"""What of an answer's visible text a client already has, and what may therefore still follow when a stream breaks."""

from io import StringIO

from ocp_trio.errors import UpstreamError

__all__ = ["KEPT", "SEPARATOR", "AnswerText"]

KEPT = 2**19
"""Characters of a message that are kept to compare a repetition with; a longer one cannot be taken up again."""
SEPARATOR = "\n\n"
"""Stands between the texts of two messages of one answer (before and after a tool round)."""


class AnswerText:
    """The text of one answer, message by message.

    When a message breaks off, the next one repeats it from the first lost block on. What was said of the lost blocks
    has to be a prefix of that repetition, and is not said again.

    Attributes:
        said_anything: Whether any visible text has been passed on.
    """

    def __init__(self) -> None:
        self.said_anything = False
        self._message_spoke = False
        self._separator = ""
        self._awaited, self._matched = "", 0
        self._begin_attempt()

    def _begin_attempt(self) -> None:
        # A buffer and not a list: deltas of a few characters would cost ten times their size.
        self._attempt, self._size = StringIO(), 0
        self._starts: dict[int, int] = {}

    @property
    def awaits_repetition(self) -> bool:
        """Whether what comes next has to repeat what was said before."""
        return bool(self._awaited)

    def begin_block(self, index: int) -> None:
        """Take what follows as the text of block ``index`` of the message."""
        self._starts[index] = self._size

    def say(self, text: str) -> str:
        """Take the next text of the message and return what of it is new.

        Raises:
            UpstreamError: it contradicts what a client already has.
        """
        self._size += len(text)
        if self._size <= KEPT:
            self._attempt.write(text)
        if self._awaited:
            text = self._check(text)
        if text and not self._message_spoke:
            self.said_anything = self._message_spoke = True
            separator, self._separator = self._separator, ""
            return separator + text
        return text

    def _check(self, text: str) -> str:
        """Return what of a repetition goes beyond what was said before."""
        count = min(len(self._awaited) - self._matched, len(text))
        if not self._awaited.startswith(text[:count], self._matched):
            raise UpstreamError("upstream broke off, then gave a different answer after part of one had been sent")
        self._matched += count
        if self._matched == len(self._awaited):
            self._awaited, self._matched = "", 0
        return text[count:]

    def abandon(self, first_lost: int) -> None:
        """Take the message as broken off, and its blocks from ``first_lost`` on as void: the next one repeats them.

        Raises:
            UpstreamError: too much of them was said to be compared.
        """
        lost_from = min((start for index, start in self._starts.items() if index >= first_lost), default=self._size)
        if self._size > max(KEPT, lost_from):
            raise UpstreamError("upstream broke off in an answer that is too long to be taken up again")
        self._awaited = self._attempt.getvalue()[lost_from:] + self._awaited[self._matched :]
        self._matched = 0
        self._begin_attempt()

    def settle(self) -> None:
        """Take the message as complete: what follows belongs to another one.

        Raises:
            UpstreamError: it should have repeated more than it did.
        """
        if self._awaited:
            raise UpstreamError("upstream broke off, then gave a shorter answer after more of one had been sent")
        if self._message_spoke:
            self._separator = SEPARATOR
        self._message_spoke = False
        self._begin_attempt()
