"""One request and the child that answers it: its conversation goes in, its answer comes out."""

import logging
from collections.abc import AsyncGenerator, Iterator
from io import StringIO

import trio

from ocp_trio.claude.control_lines import ControlRequest
from ocp_trio.claude.held import HeldTurn
from ocp_trio.claude.histories import name_after
from ocp_trio.claude.lease import Lease
from ocp_trio.claude.lines import Line, RateLimitInfo
from ocp_trio.claude.portions import PIECE, portions
from ocp_trio.claude.reconcile import Reconciler
from ocp_trio.claude.stdin import Step, conversation
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.claude.tool_server import ToolServer
from ocp_trio.completion import (
    Batch,
    Completed,
    CompletionRequest,
    Failed,
    Started,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
)
from ocp_trio.errors import ChildSpawnError, LineTooLongError, OcpError, UpstreamIncompleteError
from ocp_trio.streaming import Sighting, StallGuard

__all__ = ["Turn"]

LONGEST_CONTINUED = 2**19
"""Characters of the longest answer whose child is kept for the next turn: that much is remembered."""
LEAVE = 1.0
"""Seconds that a child may take to exit by itself once its answer is complete and its input closed."""
SETTLE = 2.0
"""Seconds that a child may take from the end of an answer with calls until it waits for their results."""
EXIT = 0.1
"""Seconds that the exit status of a child is waited for which has closed its output without a word."""
NOT_EXECUTED = (126, 127)
"""Exit statuses of a launcher that could not execute the program."""

logger = logging.getLogger("ocp_trio.claude")


class Turn:
    """What one child is asked, and what it answers.

    Args:
        lease: A child that is freshly started, or holds the beginning of the conversation, or waits for results.
        guard: What its output is read through; None where it may be silent for ever.
        request: What it is asked.
        max_line: Longest line accepted from it, in bytes.
        queued: Seconds that it has waited for its turn.

    Attributes:
        error: Why there was no answer, or only a part of one.
    """

    def __init__(
        self, lease: Lease, guard: StallGuard | None, request: CompletionRequest, max_line: int, *, queued: float = 0.0
    ) -> None:
        self.error: OcpError | None = None
        self._queued = queued
        self._child = lease.child
        self._known = lease.known
        self._guard = guard
        self._request = request
        resumed = lease.kept.held
        self._resumed = resumed is not None
        self._decoder = resumed.decoder if resumed else StreamJsonDecoder(max_line)
        self._server = resumed.server if resumed else ToolServer(request.tools)
        self._reconciler = Reconciler(self._server.names, parallel=request.parallel_tool_calls, resumed=self._resumed)
        self._heard = False
        self._answer = StringIO()
        self._answer_size = 0
        self._outcome: str | None = None
        self._progress = trio.Event()
        self._replies: list[bytes] = []

    @property
    def listed_models(self) -> list[tuple[str, str]]:
        """Alias and id of each model that the child said it serves."""
        return self._reconciler.listed_models

    @property
    def answered(self) -> bool:
        """Whether the model has answered, to the end."""
        return self._outcome is not None

    @property
    def rate_limits(self) -> list[RateLimitInfo]:
        """What the child has told of the subscription's limits."""
        return self._reconciler.rate_limits

    @property
    def conversation(self) -> bytes | None:
        """Name of the conversation that the child now holds; None unless its turn has ended well, or waits."""
        if self._answer_size > LONGEST_CONTINUED:
            return None
        text = self._answer.getvalue()
        if self._outcome == "stop" and self._reconciler.turn_over:
            return name_after(self._request, text)
        calls = self._reconciler.calls.uses()
        if self._outcome == "tool_calls" and calls and self._waits():
            return name_after(self._request, text, calls)
        return None

    @property
    def held(self) -> HeldTurn | None:
        """What it takes to go on with a turn that waits; None if it does not."""
        return HeldTurn(self._decoder, self._server) if self._outcome == "tool_calls" else None

    def _waits(self) -> bool:
        """Whether the CLI waits for the results of all calls that the caller has seen, and of no other."""
        return self._server.waiting.keys() == self._reconciler.calls.ids and not self._replies

    async def write(self) -> None:
        """Write the conversation, each part when what comes before it has been accepted, then answer until cancelled.

        What the CLI asks meanwhile is answered from here, too: nothing else writes to it.
        """
        try:
            for step in self._steps():
                while self._reconciler.acks < step.acks:
                    await self._reply()
                await self._child.stdin.send_all(step.data)
            while True:
                await self._reply()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # The child takes no more input; what that means is told by what it still says, or by its end.
            return

    def _steps(self) -> Iterator[Step]:
        if not self._resumed:
            return conversation(self._request, self._known)
        results = (part for part in self._request.messages[-1].parts if isinstance(part, ToolResult))
        return iter([Step(self._server.give(results), 0)])

    async def _reply(self) -> None:
        """Wait until more has been read, and write the answers that it asks for."""
        await self._progress.wait()
        self._progress = trio.Event()
        while self._replies:
            await self._child.stdin.send_all(self._replies[0])
            # Only now: a turn with an answer that is half written can never go on.
            del self._replies[0]

    async def _read_some(self) -> bytes:
        if self._guard is None:
            return await self._child.receive_some()
        return await self._guard.read(self._child.receive_some)

    async def read(self) -> AsyncGenerator[Batch, None]:
        """Yield batches up to the terminal event, whatever ends the child."""
        yield (Started(self._queued),)
        try:
            while not self._reconciler.done:
                data = await self._read_some()
                if data:
                    is_long = self._decoder.pending > PIECE
                    batch = self._take(self._decoder.feed(data), len(data))
                    for portion in portions(batch) if is_long else (batch,):
                        yield portion
                    continue
                if batch := self._take(self._decoder.flush(), 0):
                    yield batch
                if not self._reconciler.done:
                    raise await self._early_end()
        except OcpError as error:
            yield (Failed(error),)
        finally:
            if self._decoder.odd_lines:
                logger.info("odd_lines", extra={"count": self._decoder.odd_lines})

    def _take(self, lines: list[Line], size: int) -> Batch:
        batch = self._reconciler.feed(lines)
        text = "".join([event.text for event in batch if type(event) is TextDelta])
        self._answer_size += len(text)
        if self._answer_size <= LONGEST_CONTINUED:
            self._answer.write(text)
        self._replies += [
            reply for line in lines if isinstance(line, ControlRequest) if (reply := self._server.take(line))
        ]
        match batch:
            case (*_, Completed(reason)):
                self._outcome = reason
            case (*_, Failed(error)):
                self.error = error
        self._heard = self._heard or bool(lines)
        if self._guard is not None:
            self._report(self._guard, lines, batch, size)
        self._progress.set()
        return batch

    def _report(self, guard: StallGuard, lines: list[Line], batch: Batch, size: int) -> None:
        guard.saw_bytes(size)
        if lines:
            visible = any(isinstance(event, TextDelta | ToolCallStart | ToolCallDelta) for event in batch)
            content = visible or any(isinstance(event, ThinkingDelta) for event in batch)
            silent = self._reconciler.silent_by_nature
            last = Sighting(lines[-1].kind, content=content, visible=visible, suspends=silent)
            guard.saw_event(last, count=len(lines))

    async def _early_end(self) -> OcpError:
        if not self._heard:
            with trio.move_on_after(EXIT):
                await self._child.exited.wait()
            if self._child.returncode in NOT_EXECUTED:
                return ChildSpawnError("the claude program could not be executed")
        return UpstreamIncompleteError("the claude process ended without completing its answer")

    async def settle(self) -> None:
        """After an answer with calls, read on until the child waits for their results, for at most `SETTLE` seconds."""
        if self._outcome != "tool_calls":
            return
        held = HeldTurn(self._decoder, self._server)
        if self._reconciler.calls.dropped:
            return
        with trio.move_on_after(SETTLE):
            while not self._waits():
                data = await self._child.receive_some()
                if not data or not held.hear(data):
                    self._outcome = None
                    return

    async def leave(self) -> None:
        """Let a child that has said its last word exit by itself, for at most `LEAVE` seconds, shielded.

        One that would go on, such as by asking the model to continue a cut answer, is not waited for.
        """
        if not self._reconciler.turn_over:
            return
        with trio.move_on_after(LEAVE, shield=True):
            await self._child.stdin.aclose()
            try:
                while data := await self._child.receive_some():
                    self._reconciler.feed(self._decoder.feed(data))
            except LineTooLongError:
                return
            await self._child.exited.wait()
