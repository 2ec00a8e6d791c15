"""Offer the tools that may be called, and ask until one is called that has to be: the CLI itself can force no call."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias

import trio
from msgspec.structs import replace

from ocp_trio.claude.tool_names import ToolNames
from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    Event,
    Failed,
    Message,
    Started,
    Text,
    TextDelta,
    ToolCallStart,
    Usage,
)
from ocp_trio.errors import OcpError, UpstreamError
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["ATTEMPTS", "choose_tools", "stream_forced"]

ATTEMPTS: Final = 3
"""Answers that are asked for at most until one calls a tool."""

Stream: TypeAlias = Callable[[CompletionRequest], AbstractAsyncContextManager[AsyncIterator[Batch]]]


def choose_tools(request: CompletionRequest) -> CompletionRequest:
    """Return the request with the tools that it wants to be offered, and told to call one if it has to."""
    choice = request.tool_choice
    if choice.mode == "none" or not request.tools:
        return replace(request, tools=())
    if choice.names:
        request = replace(request, tools=tuple(tool for tool in request.tools if tool.name in choice.names))
    if choice.mode == "required":
        request = replace(request, system="\n\n".join(filter(None, (request.system, _order(request)))))
    return request


def _order(request: CompletionRequest) -> str:
    names = ToolNames(tool.name for tool in request.tools)
    shown = ", ".join(names.shown(tool.name) for tool in request.tools)
    which = f"the tool {shown}" if len(request.tools) == 1 else f"one of these tools: {shown}"
    return f"Answer only by calling {which}. An answer without a call is of no use to whoever asks."


def _ask_again(request: CompletionRequest, said: str) -> CompletionRequest:
    complaint = Text(f"That was no call. {_order(request)}")
    if not said or said.isspace():
        # No model accepts a turn without text.
        last = request.messages[-1]
        return replace(request, messages=(*request.messages[:-1], replace(last, parts=(*last.parts, complaint))))
    turns = Message("assistant", (Text(said),)), Message("user", (complaint,))
    return replace(request, messages=(*request.messages, *turns))


@asynccontextmanager
async def stream_forced(stream: Stream, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
    """Stream an answer that calls a tool, for the length of a block; before its call only signs of life come.

    Cancellation: leaving the block ends the attempt that is being made, within the bound of ``stream``.
    """
    # Capacity 0: an attempt does not run ahead of whoever takes its batches.
    send, receive = trio.open_memory_channel[Batch](0)
    attempts = _Attempts(stream, send)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(attempts.run, request)
            with receive:
                yield receive
            if not attempts.ended:
                nursery.cancel_scope.cancel()


class _Attempts:
    """The attempts at one answer; ``ended`` once the terminal event is on its way."""

    def __init__(self, stream: Stream, send: trio.MemorySendChannel[Batch]) -> None:
        self.ended = False
        self._stream = stream
        self._send = send
        self._usage = Usage()

    async def run(self, request: CompletionRequest) -> None:
        """Make attempts until one calls a tool, or there have been enough."""
        with self._send:
            try:
                for _ in range(ATTEMPTS):
                    said = await self._attempt(request)
                    if self.ended:
                        return
                    request = _ask_again(request, said)
                raise UpstreamError(f"the model called no tool in {ATTEMPTS} attempts, and it had to")
            except OcpError as error:
                self.ended = True
                await self._send.send((Failed(error),))
            except trio.BrokenResourceError:
                # Whoever took the batches has left.
                return

    async def _attempt(self, request: CompletionRequest) -> str:
        """Make one attempt; return what it said if it made no call."""
        held: list[Event] = []
        calling = False
        async with self._stream(request) as batches:
            async for batch in batches:
                held += batch
                calling = calling or any(isinstance(event, ToolCallStart) for event in batch)
                match batch:
                    case (*_, Completed(reason, usage)):
                        self._usage += usage
                        if not calling and reason == "stop":
                            break
                        self.ended = True
                        held[-1] = Completed(reason, self._usage)
                    case (*_, Failed()):
                        self.ended = True
                if calling or self.ended:
                    passed, held = tuple(held), []
                else:
                    passed = tuple(event for event in batch if isinstance(event, Started | Activity))
                    held = [event for event in held if not isinstance(event, Started | Activity)]
                await self._send.send(passed)
        return "".join([event.text for event in held if isinstance(event, TextDelta)])
