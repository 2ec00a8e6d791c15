"""Write an answer to its client: as a stream of chunks, or as one object."""

from typing import Final, Protocol, TypeAlias

from ocp_trio.completion import Batch, Completed, Failed
from ocp_trio.errors import OcpError
from ocp_trio.openai import sse
from ocp_trio.openai.chunks import ChunkEncoder, CompletionBuilder
from ocp_trio.openai.errors import error_object, error_response
from ocp_trio.web.connection import Send, send_whole

__all__ = ["BEAT", "Item", "Sink", "StreamSink", "WholeSink", "is_last"]

Headers: TypeAlias = list[tuple[bytes, bytes]]


class Beat:
    """A heartbeat, among the batches."""


BEAT: Final = Beat()
_TERMINAL: Final = (Completed, Failed)
Item: TypeAlias = Batch | Beat


def is_last(item: Item) -> bool:
    """Whether an item ends an answer."""
    return isinstance(item, tuple) and bool(item) and isinstance(item[-1], _TERMINAL)


class Sink(Protocol):
    """Where the items of an answer go.

    Attributes:
        beats: How many heartbeats were written.
        outcome: What the answer ended with, once it has ended.
    """

    beats: int
    outcome: Completed | Failed | None

    async def write(self, item: Item) -> bool:
        """Write what a client sees of an item; return whether that was anything but a heartbeat."""
        ...


async def _send_error(send: Send, headers: Headers, error: OcpError) -> None:
    response = error_response(error)
    own = [(name.encode(), value.encode()) for name, value in response.headers]
    await send_whole(send, response.status, [*headers, *own], response.body)


class StreamSink:
    """Writes an event stream.

    Args:
        send: The response's.
        headers: Those that every response has.
        encoder: Makes the chunks.
        beat: What a heartbeat looks like.
        early: Commit the headers with the first batch, whatever it holds; else with the first visible one.
    """

    def __init__(self, send: Send, headers: Headers, encoder: ChunkEncoder, *, beat: bytes, early: bool) -> None:
        self.beats = 0
        self.outcome: Completed | Failed | None = None
        self._send = send
        self._headers = headers
        self._encoder = encoder
        self._beat = beat
        self._early = early
        self._committed = False

    async def write(self, item: Item) -> bool:
        """Write the frames of an item in one piece, after headers and role chunk."""
        if isinstance(item, Beat):
            await self._commit()
            await self._send({"type": "http.response.body", "body": self._beat, "more_body": True})
            self.beats += 1
            return False
        frames = self._encoder.encode(item)
        last = item[-1] if item else None
        if isinstance(last, _TERMINAL):
            self.outcome = last
            await self._end(frames, last)
            return True
        if frames or (self._early and not self._committed):
            await self._commit()
        if frames:
            await self._send({"type": "http.response.body", "body": frames, "more_body": True})
        return bool(frames)

    async def _end(self, frames: bytes, last: Completed | Failed) -> None:
        if isinstance(last, Completed):
            frames += self._encoder.finish(last)
        elif self._committed or frames:
            frames += self._encoder.error(error_object(last.error))
        else:
            await _send_error(self._send, self._headers, last.error)
            return
        await self._commit()
        await self._send({"type": "http.response.body", "body": frames, "more_body": False})

    async def _commit(self) -> None:
        """Send headers and role chunk, once."""
        if self._committed:
            return
        self._committed = True
        own = [(name.encode(), value.encode()) for name, value in sse.STREAM_HEADERS]
        await self._send({"type": "http.response.start", "status": 200, "headers": [*self._headers, *own]})
        await self._send({"type": "http.response.body", "body": self._encoder.role(), "more_body": True})


class WholeSink:
    """Writes one completion object.

    Args:
        send: The response's.
        headers: Those that every response has.
        builder: Collects the answer.
    """

    def __init__(self, send: Send, headers: Headers, builder: CompletionBuilder) -> None:
        self.beats = 0
        self.outcome: Completed | Failed | None = None
        self._send = send
        self._headers = headers
        self._builder = builder
        self._committed = False

    async def write(self, item: Item) -> bool:
        """Collect an item; send the object with the last one."""
        if isinstance(item, Beat):
            await self._keep_alive()
            return False
        self._builder.add(item)
        last = item[-1] if item else None
        if isinstance(last, _TERMINAL):
            self.outcome = last
            await self._end(last)
        return True

    async def _end(self, last: Completed | Failed) -> None:
        if isinstance(last, Failed) and not self._committed:
            await _send_error(self._send, self._headers, last.error)
            return
        body = self._builder.build(last) if isinstance(last, Completed) else error_response(last.error).body
        if self._committed:
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
        else:
            await send_whole(self._send, 200, [*self._headers, (b"content-type", b"application/json")], body)

    async def _keep_alive(self) -> None:
        """Send a line feed, which is white space before the JSON text; the status is 200 from then on."""
        if not self._committed:
            self._committed = True
            headers = [*self._headers, (b"content-type", b"application/json")]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"\n", "more_body": True})
        self.beats += 1
