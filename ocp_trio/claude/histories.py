"""Name a conversation by everything that its child holds, so that nothing else can ever be continued in it."""

import hashlib
from collections.abc import Iterator

import msgspec

from ocp_trio.claude.tool_server import can_answer
from ocp_trio.completion import CompletionRequest, Message, Text, ToolResult, ToolUse

__all__ = ["continued_by", "name_after"]

# A caller may sort the arguments of a call that it sends back.
_encode = msgspec.json.Encoder(order="sorted").encode


def _chain(request: CompletionRequest) -> Iterator[bytes]:
    """Yield the name of the conversation after each message, from before the first one on."""
    settings = (request.caller, request.model, request.system, request.effort, request.max_tokens, request.tools)
    name = hashlib.sha256(_encode(settings)).digest()
    yield name
    for message in request.messages:
        name = _next(name, message)
        yield name


def _next(name: bytes, message: Message) -> bytes:
    # The kind of each part is told apart: parts of different kinds must not encode alike.
    parts = [(type(part).__name__, part) for part in message.parts]
    return hashlib.sha256(name + _encode((message.role, parts))).digest()


def continued_by(request: CompletionRequest) -> list[tuple[int, bytes]]:
    """Return what a child may hold that can go on with ``request``: number of its messages, and their name.

    The longest comes first. A child holds whole turns, so what is new begins after an answer. One whose answer ends
    with calls waits for their results and nothing else.
    """
    names = list(_chain(request))
    counts = range(len(request.messages) - 1, 0, -1)
    return [(count, names[count]) for count in counts if _may_end(request, count)]


def _may_end(request: CompletionRequest, count: int) -> bool:
    """Whether a child may hold the first ``count`` messages, and go on with the others."""
    last, *following = request.messages[count - 1 :]
    if last.role != "assistant":
        return False
    calls = [part.id for part in last.parts if isinstance(part, ToolUse)]
    return not calls or (len(following) == 1 and _answers(following[0], calls))


def _answers(message: Message, calls: list[str]) -> bool:
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    answered = sorted(result.id for result in results) == sorted(calls)
    return answered and len(results) == len(message.parts) and can_answer(results)


def name_after(request: CompletionRequest, answer: str, calls: tuple[ToolUse, ...] = ()) -> bytes:
    """Return the name of the conversation once ``request`` has got an answer, as its client will send it back."""
    *_, name = _chain(request)
    # No dialect passes on a text of white space beside calls.
    said = (Text(answer),) if not calls or (answer and not answer.isspace()) else ()
    return _next(name, Message("assistant", (*said, *calls)))
