"""Encode events as OpenAI's chat completion chunks, or collect them into one chat completion object."""

import secrets

import msgspec
from msgspec import UNSET

from ocp_trio.completion import (
    Batch,
    Completed,
    Event,
    Refusal,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
)
from ocp_trio.openai import sse
from ocp_trio.openai.completion_object import (
    AnswerMessage,
    Choice,
    CompletionObject,
    Function,
    ToolCallObject,
    usage_object,
)
from ocp_trio.openai.errors import ErrorObject, encode_error

__all__ = ["ChunkEncoder", "CompletionBuilder", "new_completion_id"]

_json = msgspec.json.Encoder().encode


def new_completion_id() -> str:
    """Make an id that no other completion has."""
    return "chatcmpl-" + secrets.token_urlsafe(18)


class ChunkEncoder:
    """Encoder of one stream's frames, without I/O; all that its chunks share is encoded once.

    Args:
        completion_id: Id of the completion, on every chunk.
        created: Seconds since the epoch, on every chunk.
        model: Name of the model, on every chunk.
        include_usage: Whether usage comes before the end; all other chunks then say ``"usage":null``.
        show_reasoning: Whether reasoning text is sent, as ``reasoning_content``.
    """

    def __init__(
        self,
        *,
        completion_id: str,
        created: int,
        model: str,
        include_usage: bool = False,
        show_reasoning: bool = False,
    ) -> None:
        self._include_usage = include_usage
        self._show_reasoning = show_reasoning
        head = b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":['
        self._head = head % (_json(completion_id), created, _json(model))
        self._tail = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._delta = self._head + b'{"index":0,"delta":{'
        self._delta_end = b'},"finish_reason":null}]' + self._tail
        self._text = self._delta + b'"content":'
        self._thinking = self._delta + b'"reasoning_content":'
        self._call = self._delta + b'"tool_calls":[{"index":'
        self._call_end = b"}}]" + self._delta_end

    def role(self) -> bytes:
        """Make the first frame."""
        return self._delta + b'"role":"assistant","content":""' + self._delta_end

    def empty_delta(self) -> bytes:
        """Make a frame that says nothing: a heartbeat for clients that count only data."""
        return self._delta + self._delta_end

    def encode(self, batch: Batch) -> bytes:
        """Encode what a client sees of ``batch``; empty if it sees nothing. Terminal events are the caller's."""
        before, after = self._text, self._delta_end
        # Nearly all events are text, and an exact test of the type takes a third of a class pattern's time.
        return b"".join(
            [
                before + _json(event.text) + after if type(event) is TextDelta and event.text else self._frame(event)
                for event in batch
            ]
        )

    def finish(self, completed: Completed) -> bytes:
        """Make the last frames: the finish reason, usage if it was asked for, ``[DONE]``."""
        reason = _json(completed.finish_reason)
        frames = self._head + b'{"index":0,"delta":{},"finish_reason":%b}]' % reason + self._tail
        if self._include_usage:
            frames += self._head + b'],"usage":%b}\n\n' % _json(usage_object(completed.usage))
        return frames + sse.DONE

    def error(self, error: ErrorObject) -> bytes:
        """Make the last frames of a stream that failed: the error, ``[DONE]``."""
        return sse.data(encode_error(error)) + sse.DONE

    def _frame(self, event: Event) -> bytes:
        """Encode any event but a text delta that has text."""
        match event:
            case ThinkingDelta(text) if text and self._show_reasoning:
                return self._thinking + _json(text) + self._delta_end
            case Refusal(text):
                return self._delta + b'"refusal":' + _json(text) + self._delta_end
            case ToolCallStart(index, call_id, name):
                opening = b'%d,"id":%b,"type":"function","function":{"name":%b,"arguments":""'
                return self._call + opening % (index, _json(call_id), _json(name)) + self._call_end
            case ToolCallDelta(index, arguments) if arguments:
                return self._call + b'%d,"function":{"arguments":%b' % (index, _json(arguments)) + self._call_end
            case _:
                return b""


class CompletionBuilder:
    """Collector of a whole answer, for a caller that does not stream.

    Args:
        completion_id: Id of the completion.
        created: Seconds since the epoch.
        model: Name of the model.
        show_reasoning: Whether reasoning text is told, as ``reasoning_content``.
    """

    def __init__(self, *, completion_id: str, created: int, model: str, show_reasoning: bool = False) -> None:
        self._id = completion_id
        self._created = created
        self._model = model
        self._show_reasoning = show_reasoning
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._refusal: str | None = None
        self._calls: dict[int, tuple[ToolCallStart, list[str]]] = {}

    @property
    def text(self) -> str:
        """The visible text so far."""
        return "".join(self._text)

    def add(self, batch: Batch) -> None:
        """Take what a client sees of ``batch``. Terminal events are the caller's."""
        for event in batch:
            match event:
                case TextDelta(text):
                    self._text.append(text)
                case ThinkingDelta(text) if self._show_reasoning:
                    self._thinking.append(text)
                case Refusal(text):
                    self._refusal = text
                case ToolCallStart(index):
                    self._calls[index] = (event, [])
                case ToolCallDelta(index, arguments):
                    self._calls[index][1].append(arguments)
                case _:
                    pass

    def build(self, completed: Completed) -> bytes:
        """Make the completion object."""
        calls = tuple(
            ToolCallObject(id=call.id, function=Function(call.name, "".join(arguments)))
            for call, arguments in self._calls.values()
        )
        message = AnswerMessage(
            content=self.text or (None if calls or self._refusal else ""),
            refusal=self._refusal,
            reasoning_content="".join(self._thinking) or UNSET,
            tool_calls=calls or UNSET,
        )
        completion = CompletionObject(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=(Choice(message=message, finish_reason=completed.finish_reason),),
            usage=usage_object(completed.usage),
        )
        return _json(completion)
