"""Turn the model's messages into what a client sees of them: nothing twice, nothing lost, never two answers spliced.

Deltas and the ``assistant`` aggregate of their block carry the same text. A stream that breaks is restarted from the
top by the CLI, continued, or answered anew in a single aggregate: what a client already has must then be a prefix of
what comes, or the answer ends with an error.
"""

from ocp_trio.claude import outcome
from ocp_trio.claude.answer import AnswerText
from ocp_trio.claude.blocks import MessageBlocks
from ocp_trio.claude.calls import Calls
from ocp_trio.claude.lines import Abandoned, ApiEvent, ApiMessage, ApiUsage, Block
from ocp_trio.claude.tokens import TokenCount
from ocp_trio.completion import Event, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, Usage
from ocp_trio.errors import UpstreamError
from ocp_trio.surrogates import can_be_encoded, scrub

__all__ = ["Messages"]


class Messages:
    """The messages of one answer.

    Its methods raise `UpstreamError` where what comes contradicts what a client already has.

    Args:
        out: Where events are appended.
        calls: What takes the calls of the caller's tools.

    Attributes:
        stop_reason: Why the newest message ended; None if it has not, or nobody said why.
        open_calls: Ids of the calls of the CLI's own tools whose results the model has not got.
        streaming: A message has begun to stream and has not ended.
    """

    def __init__(self, out: list[Event], calls: Calls) -> None:
        self.stop_reason: str | None = None
        self.open_calls: set[str] = set()
        self._out = out
        self._calls = calls
        self._answer = AnswerText()
        self._tokens = TokenCount()
        self._blocks = MessageBlocks()
        self._id = ""
        self.streaming = False
        self._broke_off = False
        self._held_notice = ""

    def stream(self, event: ApiEvent, abandoned: Abandoned | None) -> None:
        """Take an event of the API's stream; ``abandoned`` where it ends a message that broke off."""
        match event.type:
            case "content_block_delta":
                self._delta(event)
            case "message_start":
                self._begin(event.message)
                self.streaming = True
            case "content_block_start":
                self._begin_block(event.index, event.content_block)
                self._calls.begin(event.index, event.content_block)
            case "content_block_stop":
                self._end_block(event.index)
            case "message_delta":
                self.stop_reason = event.delta.stop_reason or self.stop_reason
                self._tokens.update_output(event.usage)
            case "message_stop" if abandoned is not None:
                self._abandon(abandoned.from_block_index)
            case "message_stop":
                self.streaming = False
                self._answer.settle()

    def stream_texts(self, index: int, texts: list[str]) -> bool:
        """Take text deltas of a block that streams, all at once; return whether they can be taken so."""
        block = self._blocks.streamed.get(index)
        text = "".join(texts)
        if block is None or self._answer.awaits_repetition or not can_be_encoded(text):
            return False
        new = self._answer.say(block.add(text))
        # What stands before them was held back, or separates them from an earlier message.
        texts[0] = new[: len(new) - len(text)] + texts[0]
        self._out += [TextDelta(text) for text in texts]
        return True

    def aggregate(self, message: ApiMessage) -> None:
        """Take an ``assistant`` line: a finished block of the streamed message, or one that was not streamed."""
        # A line that names no message does not begin another one.
        if message.id and message.id != self._id:
            self._begin(message)
        self.stop_reason = message.stop_reason or self.stop_reason
        for block in message.blocks:
            self._repeat_block(block)

    def finish(self, result: str = "") -> None:
        """Take the answer as complete; ``result`` repeats its last text."""
        self._release_notice()
        if not self._answer.said_anything:
            self._say_whole(scrub(result))
        self._answer.settle()

    def usage_so_far(self) -> Usage | None:
        """Return the tokens that the messages have told of by now; None if of none."""
        usage = self._tokens.so_far()
        return None if usage == Usage() else usage

    def usage(self, reported: ApiUsage | None) -> Usage:
        """Return the tokens of the answer: those that the CLI reports for all of it, or else the messages' own."""
        return self._tokens.total(reported)

    def _begin(self, message: ApiMessage) -> None:
        self._release_notice()
        if self.streaming:
            # It never ended: older versions say no more of a stream that broke off.
            self._abandon(0)
        elif not self._broke_off:
            self._answer.settle()
        self._broke_off = False
        self._id, self._blocks, self.stop_reason = message.id, MessageBlocks(), None
        # The model speaks only when it has the results of all its calls.
        self.open_calls.clear()
        self._calls.begin_message()
        self._tokens.begin_message(message.usage)

    def _abandon(self, first_lost: int) -> None:
        self.streaming, self._broke_off = False, True
        if len(self._calls):
            raise UpstreamError("upstream broke off after part of a tool call had been sent")
        self._answer.abandon(first_lost)

    def _begin_block(self, index: int, block: Block) -> None:
        self._answer.begin_block(index)
        streamed = self._blocks.begin(index, block.type)
        self._say(streamed.add(block.text))
        self._think(streamed.add(block.thinking))

    def _delta(self, event: ApiEvent) -> None:
        delta, index = event.delta, event.index
        block = self._blocks.streamed.get(index)
        if block is None:
            self._begin_block(index, Block(delta.type.removesuffix("_delta")))
            block = self._blocks.streamed[index]
        if delta.type == "text_delta":
            self._say(block.add(delta.text))
        elif delta.type == "thinking_delta":
            self._think(block.add(delta.thinking))
        elif delta.type == "input_json_delta":
            self._calls.add(event.index, block.add(delta.partial_json))

    def _end_block(self, index: int) -> None:
        block = self._blocks.streamed.get(index)
        if block is None:
            return
        if block.kind == "text":
            self._say(block.flush())
            self._out.append(TextEnd())
        elif block.kind == "thinking":
            self._think(block.flush())
            self._out.append(ThinkingEnd())
        else:
            self._calls.end(index)

    def _repeat_block(self, block: Block) -> None:
        match block.type:
            case "text":
                text, streamed = self._blocks.repeat("text", block.text)
                self._release_notice()
                if streamed:
                    self._say(text)
                elif outcome.is_notice(text):
                    self._held_notice = text
                else:
                    self._say_whole(text)
            case "thinking":
                text, streamed = self._blocks.repeat("thinking", block.thinking)
                self._think(text)
                if text and not streamed:
                    self._out.append(ThinkingEnd())
            case "tool_use" if self._calls.is_callers(block):
                self._calls.repeat(block)
            case "tool_use":
                self.open_calls.add(block.id)

    def _say(self, text: str) -> None:
        if text and (new := self._answer.say(text)):
            self._out.append(TextDelta(new))

    def _say_whole(self, text: str) -> None:
        """Say a text that was not streamed."""
        if text:
            self._say(text)
            self._out.append(TextEnd())

    def _think(self, text: str) -> None:
        if text:
            self._out.append(ThinkingDelta(text))

    def _release_notice(self) -> None:
        """Say what looked like the CLI's own words, now that it has turned out to be the model's."""
        notice, self._held_notice = self._held_notice, ""
        self._say_whole(notice)
