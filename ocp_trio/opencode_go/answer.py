"""Put together one answer from a provider's events, so that it ends exactly once."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import msgspec

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    Event,
    Failed,
    FinishReason,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.errors import OcpError, UpstreamIncompleteError
from ocp_trio.opencode_go.errors import classify, parse_report
from ocp_trio.opencode_go.sse_decoder import SseEvent, SseItem
from ocp_trio.streaming import Sighting
from ocp_trio.surrogates import SurrogateJoiner

__all__ = ["Answer", "Wire"]

DONE = "[DONE]"
"""Data that ends a stream of OpenAI's flavour."""

Block: TypeAlias = Literal["text", "thinking"] | int

_CONTENT = (TextDelta, ThinkingDelta, ToolCallDelta)
_VISIBLE = (TextDelta, ToolCallStart, ToolCallDelta)

logger = logging.getLogger("ocp_trio.opencode_go")


class Wire(msgspec.Struct, frozen=True):
    """What the data of any flavour's events may hold."""

    error: Any = None

    @property
    def is_error(self) -> bool:
        """Whether it is an error object, or holds one."""
        return bool(self.error)


W = TypeVar("W", bound=Wire)


class Answer(ABC, Generic[W]):
    """Pure state of one answer: feed it what an `SseDecoder` returns; each flavour reads events in its own way.

    Args:
        decoder: Decodes an event's data.

    Attributes:
        done: The terminal event has been returned; whatever comes later is logged, never returned.
        finish_reason: How the answer ends, as soon as upstream has said so.
        usage: What it cost, as far as upstream has said so.
        odd_events: How many events could not be read; they are signs of life all the same.
    """

    keepalive: ClassVar[str | None] = None
    """Kind of the events that only say that somebody is there, as comments do."""

    def __init__(self, decoder: msgspec.json.Decoder[W]) -> None:
        self._decoder = decoder
        self.done = False
        self.finish_reason: FinishReason | None = None
        self.usage = Usage()
        self.odd_events = 0
        self._calls = 0
        self._out: list[Event] = []
        self._open: Block | None = None
        self._said_text = False
        self._joiner = SurrogateJoiner()

    def feed(self, items: Iterable[SseItem]) -> Batch:
        """Return what these items mean: at least one event for each that is more than a sign of life."""
        self._out = []
        for item in items:
            if not isinstance(item, SseEvent):
                continue
            if self.done:
                if item.data != DONE:
                    logger.info("late_event", extra={"kind": item.event, "delay": 0.0})
                continue
            before, usage = len(self._out), self.usage
            kind = self._take(item)
            if self.usage is not usage and not self.done:
                self._out.append(Activity(kind, self.usage))
            elif len(self._out) == before and kind != self.keepalive:
                self._out.append(Activity(kind))
        return tuple(self._out)

    def completed(self) -> Completed:
        """Make the terminal event of an answer whose finish reason is known, and whose stream just ends."""
        assert self.finish_reason is not None
        return Completed(self.finish_reason, self.usage)

    def sighting(self, batch: Batch) -> Sighting:
        """Describe a batch that has just been returned to the stall guard."""
        last = batch[-1]
        return Sighting(
            last.kind if isinstance(last, Activity) else type(last).__name__,
            content=any(isinstance(event, _CONTENT) for event in batch),
            visible=any(isinstance(event, _VISIBLE) for event in batch),
            terminal=self.done,
            finish=self.finish_reason is not None,
            inside_tool_call=isinstance(self._open, int),
        )

    @abstractmethod
    def _read(self, wire: W) -> str:
        """Take the data of one event, and return what kind it is; empty leaves that to the event's name."""

    def _take(self, event: SseEvent) -> str:
        """Take one event, and return what kind it is."""
        if event.data == DONE:
            self._end()
            return DONE
        wire = self._decode(event.data)
        if event.event == "error" or (wire is not None and wire.is_error):
            self._fail(classify(parse_report(event.data)))
            return "error"
        if wire is None:
            self.odd_events += 1
            return "unreadable"
        return self._read(wire) or event.event

    def _decode(self, data: str) -> W | None:
        """Decode an event's data; None if it is no JSON, or has fields of other types."""
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError:
            return None
        except (msgspec.DecodeError, RecursionError):
            pass
        try:
            # A lone half of a surrogate pair, which msgspec refuses.
            found: W = msgspec.convert(json.loads(data), self._decoder.type)
        except (ValueError, RecursionError, msgspec.ValidationError):
            return None
        return found

    def _say(self, text: str) -> None:
        if text:
            self._enter("text")
            self._said_text = True
            self._add(text)

    def _think(self, text: str) -> None:
        if text:
            self._enter("thinking")
            self._add(text)

    def _begin_call(self, call_id: str, name: str) -> int:
        """Begin a tool call and return its index."""
        index, self._calls = self._calls, self._calls + 1
        self._enter(index)
        self._out.append(ToolCallStart(index, call_id, name))
        return index

    def _argue(self, index: int, arguments: str) -> None:
        """Take a piece of the arguments of call ``index``, which need not be the one that was begun last."""
        if arguments and index == self._open:
            self._add(arguments)
        elif arguments:
            self._out.append(ToolCallDelta(index, arguments))

    def _enter(self, block: Block) -> None:
        if block != self._open:
            self._leave()
            self._open = block

    def _leave(self) -> None:
        """End the open block, if there is one."""
        self._append(self._joiner.flush())
        match self._open:
            case "text":
                self._out.append(TextEnd())
            case "thinking":
                self._out.append(ThinkingEnd())
            case int(index):
                self._out.append(ToolCallEnd(index))
        self._open = None

    def _add(self, text: str) -> None:
        self._append(self._joiner.join(text))

    def _append(self, text: str) -> None:
        """Append a delta of the open block."""
        if not text:
            return
        match self._open:
            case "text":
                self._out.append(TextDelta(text))
            case "thinking":
                self._out.append(ThinkingDelta(text))
            case int(index):
                self._out.append(ToolCallDelta(index, text))

    def _finish(self, reason: FinishReason) -> None:
        """Note how the answer ends; usage and the end of the stream may still come."""
        self._leave()
        # Some models say "stop" after tool calls, and clients would then not run them.
        self.finish_reason = "tool_calls" if self._calls and reason == "stop" else reason

    def _end(self) -> None:
        """Take the answer as complete, if upstream has said how it ends, or has said nothing but text."""
        if self.finish_reason is None and self._said_text and not self._calls:
            self._finish("stop")
        if self.finish_reason is None:
            self._fail(UpstreamIncompleteError("upstream ended its answer without saying how it ended"))
        else:
            self._leave()
            self._out.append(self.completed())
            self.done = True

    def _fail(self, error: OcpError) -> None:
        """Give the answer up, unless all of it is there: what goes wrong after its finish is no concern of a client."""
        self._out.append(Failed(error) if self.finish_reason is None else self.completed())
        self.done = True
