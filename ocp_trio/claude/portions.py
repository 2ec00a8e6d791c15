"""Pass a very long text on piece by piece, so that other streams get their turn meanwhile."""

from collections.abc import Iterator

from ocp_trio.completion import Batch, TextDelta

__all__ = ["PIECE", "portions"]

PIECE = 2**16
"""Characters of a text that are passed on at a time."""


def portions(batch: Batch) -> Iterator[Batch]:
    """Cut a batch that holds a very long text."""
    for event in batch:
        if isinstance(event, TextDelta):
            for start in range(0, len(event.text), PIECE):
                yield (TextDelta(event.text[start : start + PIECE]),)
        else:
            yield (event,)
