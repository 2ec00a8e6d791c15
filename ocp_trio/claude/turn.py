"""One request and the child that answers it: its conversation goes in, its answer comes out."""

import logging
from collections.abc import AsyncGenerator

import trio

from ocp_trio.claude.histories import name_after
from ocp_trio.claude.lines import Line
from ocp_trio.claude.reconcile import Reconciler
from ocp_trio.claude.stdin import conversation
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.completion import Batch, Completed, CompletionRequest, Failed, Started, TextDelta, ThinkingDelta
from ocp_trio.errors import ChildSpawnError, LineTooLongError, OcpError, UpstreamIncompleteError
from ocp_trio.streaming import Child, Sighting, StallGuard

__all__ = ["Turn"]

LEAVE = 1.0
"""Seconds that a child may take to exit by itself once its answer is complete and its input closed."""
EXIT = 0.1
"""Seconds that the exit status of a child is waited for which has closed its output without a word."""
NOT_EXECUTED = (126, 127)
"""Exit statuses of a launcher that could not execute the program."""

logger = logging.getLogger("ocp_trio.claude")


class Turn:
    """What one child is asked, and what it answers.

    Args:
        child: Freshly started, or holding the beginning of the conversation.
        known: How many of the request's messages it holds.
        guard: What its output is read through.
        request: What it is asked.
        max_line: Longest line accepted from it, in bytes.
    """

    def __init__(self, child: Child, known: int, guard: StallGuard, request: CompletionRequest, max_line: int) -> None:
        self._child = child
        self._known = known
        self._guard = guard
        self._request = request
        self._decoder = StreamJsonDecoder(max_line)
        self._reconciler = Reconciler()
        self._heard = False
        self._answer: list[str] = []
        self._complete = False
        self._progress = trio.Event()

    @property
    def conversation(self) -> bytes | None:
        """Name of the conversation that the child now holds; None unless its turn has ended well, by itself."""
        if not (self._complete and self._reconciler.turn_over):
            return None
        return name_after(self._request, "".join(self._answer))

    async def write(self) -> None:
        """Write the conversation, each part when what comes before it has been accepted."""
        try:
            for step in conversation(self._request, self._known):
                while self._reconciler.acks < step.acks:
                    await self._progress.wait()
                    self._progress = trio.Event()
                await self._child.stdin.send_all(step.data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # The child takes no more input; what that means is told by what it still says, or by its end.
            return

    async def read(self) -> AsyncGenerator[Batch, None]:
        """Yield batches up to the terminal event, whatever ends the child."""
        yield (Started(),)
        try:
            while not self._reconciler.done:
                data = await self._guard.read(self._child.receive_some)
                if data:
                    yield self._take(self._decoder.feed(data), len(data))
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
        self._answer += [event.text for event in batch if isinstance(event, TextDelta)]
        match batch:
            case (*_, Completed("stop")):
                self._complete = True
        self._guard.saw_bytes(size)
        if lines:
            self._heard = True
            visible = any(isinstance(event, TextDelta) for event in batch)
            content = visible or any(isinstance(event, ThinkingDelta) for event in batch)
            silent = self._reconciler.silent_by_nature
            last = Sighting(lines[-1].kind, content=content, visible=visible, suspends=silent)
            self._guard.saw_event(last, count=len(lines))
        self._progress.set()
        return batch

    async def _early_end(self) -> OcpError:
        if not self._heard:
            with trio.move_on_after(EXIT):
                await self._child.exited.wait()
            if self._child.returncode in NOT_EXECUTED:
                return ChildSpawnError("the claude program could not be executed")
        return UpstreamIncompleteError("the claude process ended without completing its answer")

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
