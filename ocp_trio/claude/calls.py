"""Turn the model's calls of the caller's tools into events, and remember them as their caller will send them back."""

from typing import Any

import msgspec

from ocp_trio.claude.lines import Block
from ocp_trio.claude.tool_names import ToolNames
from ocp_trio.completion import Event, ToolCallDelta, ToolCallEnd, ToolCallStart, ToolUse

__all__ = ["Calls"]

_decode_arguments = msgspec.json.Decoder(dict[str, Any]).decode


class _Call:
    """One call; ``pieces`` are those of its arguments' text."""

    def __init__(self, start: ToolCallStart) -> None:
        self.start = start
        self.pieces: list[str] = []


class Calls:
    """The calls of one answer.

    Args:
        out: Where events are appended.
        names: Of the tools on offer.
        parallel: Whether there may be more than one; else the first one counts.

    Attributes:
        dropped: Whether there was one more than there may be.
    """

    def __init__(self, out: list[Event], names: ToolNames, *, parallel: bool) -> None:
        self.dropped = False
        self._out = out
        self._names = names
        self._parallel = parallel
        self._calls: dict[str, _Call] = {}
        self._open: dict[int, _Call] = {}

    def __len__(self) -> int:
        """How many have begun."""
        return len(self._calls)

    @property
    def ids(self) -> set[str]:
        """The ids of all calls that the caller sees."""
        return set(self._calls)

    def is_callers(self, block: Block) -> bool:
        """Whether a block calls one of the caller's tools."""
        return block.type == "tool_use" and self._names.callers(block.name) is not None

    def begin_message(self) -> None:
        """Forget which blocks are open: another message counts its own."""
        self._open.clear()

    def begin(self, index: int, block: Block) -> None:
        """Take the start of a streamed block."""
        if call := self._start(block):
            self._open[index] = call

    def add(self, index: int, text: str) -> None:
        """Take a piece of the arguments."""
        if text and (call := self._open.get(index)):
            self._say(call, text)

    def end(self, index: int) -> None:
        """Take the end of a streamed block."""
        if call := self._open.pop(index, None):
            self._end(call)

    def repeat(self, block: Block) -> None:
        """Take a whole block, which may have been streamed."""
        if block.id not in self._calls and (call := self._start(block)):
            self._say(call, msgspec.json.encode(block.input).decode())
            self._end(call)

    def uses(self) -> tuple[ToolUse, ...] | None:
        """Return the calls as they will stand in the history; None if that cannot be told."""
        try:
            return tuple(
                ToolUse(call.start.id, call.start.name, _decode_arguments("".join(call.pieces)))
                for call in self._calls.values()
            )
        except msgspec.DecodeError:
            return None

    def _start(self, block: Block) -> _Call | None:
        name = self._names.callers(block.name)
        if name is None:
            return None
        if self._calls and not self._parallel:
            self.dropped = True
            return None
        call = self._calls[block.id] = _Call(ToolCallStart(len(self._calls), block.id, name))
        self._out.append(call.start)
        return call

    def _say(self, call: _Call, text: str) -> None:
        call.pieces.append(text)
        self._out.append(ToolCallDelta(call.start.index, text))

    def _end(self, call: _Call) -> None:
        if not call.pieces:
            # No text at all means no arguments, and a caller decodes it as JSON.
            self._say(call, "{}")
        self._out.append(ToolCallEnd(call.start.index))
