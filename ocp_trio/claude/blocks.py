"""The content blocks of one message: what was streamed of each, so that its aggregate does not say it again."""

from typing import NamedTuple

from ocp_trio.surrogates import SurrogateJoiner, scrub

__all__ = ["Aggregate", "MessageBlocks", "StreamedBlock"]


class StreamedBlock:
    """A block whose deltas come one by one.

    Attributes:
        kind: Its type, such as ``text``.
        said: Characters of it that have been passed on.
        repeated: Whether its aggregate has come.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.said = 0
        self.repeated = False
        self._joiner = SurrogateJoiner()

    def add(self, text: str) -> str:
        """Take a delta and return what can be passed on."""
        new = self._joiner.join(text)
        self.said += len(new)
        return new

    def flush(self) -> str:
        """Return what was held back of the last delta."""
        return self._joiner.flush()

    def repeat(self, whole: str) -> str:
        """Take the aggregate and return what the deltas have not said."""
        self.repeated = True
        # A half that is still held back stands in the aggregate, too.
        self._joiner.flush()
        new = whole[self.said :]
        self.said += len(new)
        return new


class Aggregate(NamedTuple):
    """What an aggregate adds to what was said, and whether its block was streamed."""

    new: str
    streamed: bool


class MessageBlocks:
    """The blocks of one message.

    Attributes:
        streamed: Those that have begun to stream, by their index.
    """

    def __init__(self) -> None:
        self.streamed: dict[int, StreamedBlock] = {}
        self._last: tuple[str, str] | None = None

    def begin(self, index: int, kind: str) -> StreamedBlock:
        """Begin a streamed block."""
        block = self.streamed[index] = StreamedBlock(kind)
        return block

    def repeat(self, kind: str, text: str) -> Aggregate:
        """Take an aggregate: of the first streamed block of its kind that waits for one, if any does."""
        whole = scrub(text)
        known = (kind, whole) == self._last
        self._last = (kind, whole)
        for block in self.streamed.values():
            if block.kind == kind and not block.repeated:
                return Aggregate(block.repeat(whole), streamed=True)
        return Aggregate("" if known else whole, streamed=False)
