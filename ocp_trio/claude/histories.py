"""Name a conversation by everything that its child holds, so that nothing else can ever be continued in it."""

import hashlib
from collections.abc import Iterator

import msgspec

from ocp_trio.completion import CompletionRequest, Message, Text

__all__ = ["continued_by", "name_after"]

_encode = msgspec.json.Encoder().encode


def _chain(request: CompletionRequest) -> Iterator[bytes]:
    """Yield the name of the conversation after each message, from before the first one on."""
    settings = (request.caller, request.model, request.system, request.effort, request.max_tokens)
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

    The longest comes first. A child holds whole turns, so what is new begins after an answer.
    """
    names = list(_chain(request))
    counts = range(len(request.messages) - 1, 0, -1)
    return [(count, names[count]) for count in counts if request.messages[count - 1].role == "assistant"]


def name_after(request: CompletionRequest, answer: str) -> bytes:
    """Return the name of the conversation once ``request`` has got ``answer``, as its client will send it back."""
    *_, name = _chain(request)
    return _next(name, Message("assistant", (Text(answer),)))
