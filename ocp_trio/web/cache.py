"""Keep answers for equal requests of one caller, and tell them as if they were streamed anew."""

import hashlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec
from msgspec.structs import replace

from ocp_trio.completion import (
    Activity,
    Batch,
    Completed,
    CompletionRequest,
    FinishReason,
    Started,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
)
from ocp_trio.errors import StoreUnavailableError
from ocp_trio.store import Cache

__all__ = ["Answer", "at_no_cost", "cache_key", "keep", "look_up", "replay"]

PIECE = 80
"""Code points of one piece of a replayed answer."""

logger = logging.getLogger("ocp_trio.web")


class Answer(msgspec.Struct, frozen=True):
    """A whole answer."""

    text: str
    finish_reason: FinishReason
    usage: Usage


_decode = msgspec.msgpack.Decoder(Answer).decode


def cache_key(request: CompletionRequest, backend: str, epoch: tuple[object, ...] = ()) -> bytes:
    """Return what equal requests have in common: everything that shapes the answer, and whose they are.

    What a caller calls the conversation shapes nothing.

    Args:
        request: What is asked.
        backend: Who is asked.
        epoch: What the settings add.
    """
    parts = [[(type(part).__name__, part) for part in message.parts] for message in request.messages]
    roles = [message.role for message in request.messages]
    asked = replace(request, session=None)
    return hashlib.sha256(msgspec.json.encode((backend, asked, roles, parts, epoch))).digest()


def at_no_cost(usage: Usage) -> Usage:
    """Return what an answer took for whoever gets it again: its cost has been counted."""
    return replace(usage, cost_usd=None if usage.cost_usd is None else 0.0)


async def look_up(cache: Cache, key: bytes) -> Answer | None:
    """Return what is cached under ``key``.

    Raises:
        StoreUnavailableError: the cache cannot be asked now.
    """
    found = await cache.get(key)
    try:
        return None if found is None else _decode(found)
    except msgspec.DecodeError:
        # A server of another version wrote it.
        return None


async def replay(answer: Answer) -> AsyncGenerator[Batch, None]:
    """Tell an answer as if it were told anew."""
    yield (Started(),)
    for start in range(0, len(answer.text), PIECE):
        yield (TextDelta(answer.text[start : start + PIECE]),)
    yield (TextEnd(), Completed(answer.finish_reason, answer.usage))


async def keep(batches: AsyncIterator[Batch], cache: Cache, key: bytes, ttl: float) -> AsyncGenerator[Batch, None]:
    """Pass batches on, and cache an answer that is text and ended well for ``ttl`` seconds, before its end is told.

    A store that is down costs the cache, never the answer.
    """
    texts: list[str] = []
    plain = True
    async for batch in batches:
        for event in batch:
            match event:
                case TextDelta(text):
                    texts.append(text)
                case Completed("stop", usage) if plain:
                    await _put(cache, key, Answer("".join(texts), "stop", at_no_cost(usage)), ttl)
                case Started() | TextEnd() | ThinkingDelta() | ThinkingEnd() | Activity():
                    pass
                case _:
                    # A call, a refusal or an error is told each time by whoever makes it.
                    plain = False
        yield batch


async def _put(cache: Cache, key: bytes, answer: Answer, ttl: float) -> None:
    try:
        await cache.put(key, msgspec.msgpack.encode(answer), ttl)
    except StoreUnavailableError:
        logger.warning("cache_unavailable")
