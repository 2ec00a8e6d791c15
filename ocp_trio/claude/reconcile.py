"""Turn the CLI's lines into one answer that ends exactly once."""

import logging
from itertools import islice

from msgspec.structs import replace

from ocp_trio.claude import outcome
from ocp_trio.claude.calls import Calls
from ocp_trio.claude.control_lines import (
    Control,
    ControlAnswer,
    ControlReply,
    ControlRequest,
    ControlResponse,
    McpMessage,
)
from ocp_trio.claude.lines import (
    ApiUsage,
    Assistant,
    Line,
    RateLimitEvent,
    RateLimitInfo,
    Result,
    StreamEvent,
    System,
    User,
)
from ocp_trio.claude.messages import Messages
from ocp_trio.claude.tool_names import ToolNames
from ocp_trio.completion import Activity, Batch, Completed, Event, Failed
from ocp_trio.errors import UpstreamError

__all__ = ["Reconciler"]

USAGE_KINDS = ("message_start", "message_delta")
"""Lines that tell of tokens."""
MAX_FRUITLESS = 20
"""Rounds of calls in a row that may all fail: a model that calls what it does not have would go on for ever."""

logger = logging.getLogger("ocp_trio.claude")


class Reconciler:
    """Pure state of one answer; feed it lines in order.

    An answer ends where the model calls tools of the caller's, too; the CLI's turn then goes on with another answer.

    Args:
        names: Of the caller's tools.
        parallel: Whether the model may call more than one of them at once.
        resumed: This answer goes on with a turn of the CLI's whose beginning was another one.

    Attributes:
        calls: The calls of the caller's tools.
        done: The terminal event has been returned; whatever comes later is logged, never returned.
        turn_over: The CLI has nothing more to do for this answer: its own result has come.
        acks: Empty results seen so far: each confirms one message of history.
        listed_models: Alias and id of each model that the CLI has said it serves.
        rate_limits: What the CLI has told of the subscription's limits.
    """

    def __init__(self, names: ToolNames | None = None, *, parallel: bool = True, resumed: bool = False) -> None:
        self.done = False
        self.turn_over = False
        self.acks = 0
        self.listed_models: list[tuple[str, str]] = []
        self.rate_limits: list[RateLimitInfo] = []
        self._out: list[Event] = []
        self.calls = Calls(self._out, names or ToolNames(()), parallel=parallel)
        self._messages = Messages(self._out, self.calls)
        self._resumed = resumed
        self._compacting = False
        self._fruitless = 0
        self._error: str | None = None
        self._cost: float | None = None

    @property
    def silent_by_nature(self) -> bool:
        """Whether nothing is to be expected for minutes: a local tool runs, or a compaction."""
        return self._compacting or bool(self._messages.open_calls)

    def feed(self, lines: list[Line]) -> Batch:
        """Return the events that these lines mean: at least one for each, up to the terminal one."""
        out = self._out
        out.clear()
        begun = self._take_texts(lines) if len(lines) > 1 and not self.done else 0
        for line in islice(lines, begun, None):
            if self.done:
                self._note_late(line)
                continue
            before = len(out)
            try:
                self._take(line)
            except UpstreamError as error:
                self._finish(Failed(error))
            if len(out) == before:
                out.append(Activity(line.kind, self._messages.usage_so_far() if line.kind in USAGE_KINDS else None))
        return tuple(out)

    def _take_texts(self, lines: list[Line]) -> int:
        """Take the text deltas that the lines begin with, all at once; return how many they are."""
        index, texts = _leading_texts(lines)
        return len(texts) if texts and self._messages.stream_texts(index, texts) else 0

    def _note_late(self, line: Line) -> None:
        if isinstance(line, Result):
            self.turn_over = True
            logger.info("late_event", extra={"kind": line.kind})

    def _take(self, line: Line) -> None:
        if line.parent_tool_use_id is not None:
            # What a subagent says is not the answer.
            return
        match line:
            case StreamEvent():
                self._stream(line)
            case ControlRequest(request=Control(message=McpMessage("tools/call"))) if not self._messages.streaming:
                # While a message streams its calls come before its end; one that was not streamed has no other end.
                self._end_at_calls()
            case Assistant() if line.is_api_error_message or line.error is not None:
                self._error = line.error
            case Assistant():
                self._messages.aggregate(line.message)
            case User():
                self._user(line)
            case Result():
                self._result(line)
            case _:
                self._note(line)

    def _note(self, line: Line) -> None:
        """Remember what a line tells that is no part of the answer."""
        match line:
            case System(subtype="status"):
                self._compacting = line.status == "compacting"
            case RateLimitEvent():
                self.rate_limits.append(line.rate_limit_info)
            case ControlResponse(response=ControlReply(ControlAnswer(models))):
                self.listed_models += [(model.value, model.resolvedModel) for model in models]

    def _stream(self, line: StreamEvent) -> None:
        self._messages.stream(line.event, line.abandoned_blocks)
        if line.event.type == "message_stop":
            self._end_at_calls()
            self._end_if_cut()

    def _end_at_calls(self) -> None:
        """End the answer, if its message has called tools of the caller's."""
        if not len(self.calls):
            return
        reason = outcome.finish_reason(self._messages.stop_reason)
        cut = reason in ("length", "content_filter")
        self._finish(Completed(reason if cut else "tool_calls", self._messages.usage(None)))

    def _end_if_cut(self) -> None:
        """End the answer, if its message was cut: the CLI is about to ask the model to go on."""
        reason = self._messages.stop_reason
        if not self.done and outcome.finish_reason(reason) == "length":
            self._messages.finish()
            self._complete(reason, None)

    def _user(self, line: User) -> None:
        results = [block for block in line.message.blocks if block.type == "tool_result"]
        for block in results:
            self._messages.open_calls.discard(block.tool_use_id)
        if results:
            self._fruitless = self._fruitless + 1 if all(block.is_error for block in results) else 0
        if self._fruitless >= MAX_FRUITLESS:
            raise UpstreamError(f"the model called tools {MAX_FRUITLESS} times in a row, and every call failed")
        reason = self._messages.stop_reason
        if line.isSynthetic and outcome.finish_reason(reason) in ("length", "content_filter"):
            # The CLI is about to ask the model to go on; the client asked for an answer that ends here.
            self._messages.finish()
            self._complete(reason, None)

    def _result(self, line: Result) -> None:
        reasons = (self._messages.stop_reason, line.stop_reason)
        if line.num_turns == 0 and not line.is_error and not line.result:
            self.acks += 1
            return
        self.turn_over = True
        self._cost = line.cost_usd
        if line.api_error == "max_output_tokens" or line.subtype == "error_max_turns":
            self._messages.finish()
            self._complete("max_tokens", line.usage)
        elif line.is_error and "refusal" in reasons:
            self._messages.finish()
            self._complete("refusal", line.usage)
        elif line.is_error:
            self._finish(Failed(outcome.classify(line, self._error, self._resets_at())))
        else:
            self._messages.finish(line.result)
            self._complete(reasons[0] or reasons[1], line.usage)

    def _complete(self, stop_reason: str | None, usage: ApiUsage | None) -> None:
        reason = outcome.finish_reason(stop_reason)
        # The CLI's own tools have been executed: to the client the answer is simply complete.
        # What the CLI counts is the whole turn, and the first answers of a resumed one have been counted.
        counted = self._messages.usage(None if self._resumed else usage)
        counted = replace(counted, cost_usd=self._cost)
        self._finish(Completed("stop" if reason == "tool_calls" else reason, counted))

    def _resets_at(self) -> float | None:
        """Return when the limit resets that was told of last."""
        return next((told.resetsAt for told in reversed(self.rate_limits) if told.resetsAt), None)

    def _finish(self, event: Completed | Failed) -> None:
        self.done = True
        self._out.append(event)


def _leading_texts(lines: list[Line]) -> tuple[int, list[str]]:
    """Return the index of a block, and the texts of its deltas that the lines begin with."""
    texts: list[str] = []
    index = 0
    for line in lines:
        # Exact types and plain comparisons: in a burst this is most of what happens to a delta.
        if type(line) is not StreamEvent or line.parent_tool_use_id is not None:
            break
        event = line.event
        delta = event.delta
        if event.type != "content_block_delta" or delta.type != "text_delta" or not delta.text:
            break
        if texts and event.index != index:
            break
        index = event.index
        texts.append(delta.text)
    return index, texts
