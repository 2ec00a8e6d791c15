"""Ask until an answer has the form that was asked for, a few times at most; nothing of it is seen before."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    Refusal,
    Started,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
)
from ocp_trio.errors import OcpError
from ocp_trio.openai.structured import AnswerFormat, NotJsonError, ask_again, read_json, refusal, steer
from ocp_trio.shaping.checking import find_problem
from ocp_trio.shaping.stop import Stream
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["hold_to_format"]


def hold_to_format(stream: Stream, wanted: AnswerFormat, max_attempts: int) -> Stream:
    """Return a stream whose visible text is one JSON value as it is ``wanted``, or that ends with a `Refusal`.

    Each attempt's work is over before the next one begins; usage is the sum. An answer that was cut (finish reason
    ``length`` or ``content_filter``) is passed on as it is, and so is an error, without another attempt. Until the end
    only signs of life are passed on.

    Args:
        stream: Asked up to ``max_attempts`` times.
        wanted: A form that has been checked.
        max_attempts: 1 or more.
    """

    @asynccontextmanager
    async def held(request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        # Capacity 0: an attempt does not run ahead of whoever takes its batches.
        send, receive = trio.open_memory_channel[Batch](0)
        attempts = _Attempts(stream, wanted, max_attempts, send)
        with unwrap_lone_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(attempts.run, steer(request, wanted))
                with receive:
                    yield receive
                if not attempts.ended:
                    nursery.cancel_scope.cancel()

    return held


class _Attempts:
    """The attempts at one answer; ``ended`` once the terminal event is on its way."""

    def __init__(
        self, stream: Stream, wanted: AnswerFormat, max_attempts: int, send: trio.MemorySendChannel[Batch]
    ) -> None:
        self.ended = False
        self._stream = stream
        self._wanted = wanted
        self._left = max_attempts
        self._max_attempts = max_attempts
        self._send = send
        self._usage = Usage()

    async def run(self, request: CompletionRequest) -> None:
        """Make attempts until one ends the answer."""
        with self._send:
            try:
                following: CompletionRequest | None = request
                while following:
                    following = await self._attempt(following)
            except OcpError as error:
                await self._end(Failed(error))
            except trio.BrokenResourceError:
                # Whoever took the batches has left.
                return

    async def _attempt(self, request: CompletionRequest) -> CompletionRequest | None:
        """Make one attempt; return what to ask next, None if the answer has ended."""
        self._left -= 1
        said: list[Event] = []
        async with self._stream(request) as batches:
            async for batch in batches:
                said += [event for event in batch if not isinstance(event, Started | Activity)]
                match said[-1:]:
                    case [Failed() as failed]:
                        await self._end(failed)
                        return None
                    case [Completed() as completed]:
                        return await self._judge(request, said[:-1], completed)
                await self._send.send(tuple(event for event in batch if isinstance(event, Started | Activity)))
        return None

    async def _judge(
        self, request: CompletionRequest, said: list[Event], completed: Completed
    ) -> CompletionRequest | None:
        """End the answer with what was said or with a refusal, or return what to ask next."""
        self._usage += completed.usage
        completed = Completed(completed.finish_reason, self._usage)
        if completed.finish_reason != "stop":
            await self._end(*said, completed)
            return None
        text = "".join([event.text for event in said if isinstance(event, TextDelta)])
        try:
            inner, value = read_json(text)
            problem = await find_problem(self._wanted, inner, value)
        except NotJsonError as error:
            problem = str(error)
        if problem is None:
            thoughts = [event for event in said if isinstance(event, ThinkingDelta | ThinkingEnd)]
            await self._end(*thoughts, TextDelta(inner), TextEnd(), completed)
        elif not self._left:
            await self._end(Refusal(refusal(self._max_attempts, text, problem)), completed)
        else:
            return ask_again(request, text, problem)
        return None

    async def _end(self, *events: Event) -> None:
        self.ended = True
        await self._send.send(events)
