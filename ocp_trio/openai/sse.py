"""Frames of an event stream (WHATWG), in the subset that every client of chat completions survives.

Lines end in LF; there is never an ``id:``, ``retry:`` or ``event:`` field, and never a ``data:`` without a value.
"""

__all__ = ["COMMENT", "COMMENT_LINE", "DONE", "STREAM_HEADERS", "data"]

COMMENT = b": keepalive\n\n"
"""A heartbeat that no client takes for data."""

COMMENT_LINE = b": keepalive\n"
"""The same without the blank line: openai-go before 3.43 fails at a block that holds no data."""

DONE = b"data: [DONE]\n\n"
"""The last frame of every stream."""

STREAM_HEADERS = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache, no-transform"),
    # nginx holds a response back until its buffers are full unless it is told not to.
    ("x-accel-buffering", "no"),
)
"""Headers of every event stream, live or replayed."""


def data(payload: bytes) -> bytes:
    """Frame ``payload``, which is one line: JSON text without line feeds, as encoders write it."""
    return b"data: " + payload + b"\n\n"
