"""Answer equal requests of one caller from the store's cache, as if they were streamed anew."""

import hashlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgspec

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
from ocp_trio.shaping import Stream
from ocp_trio.store import Cache

__all__ = ["cache_key", "serve_from_cache"]

PIECE = 80
"""Code points of one piece of a replayed answer."""

logger = logging.getLogger("ocp_trio.web")


class _Answer(msgspec.Struct, frozen=True):
    text: str
    finish_reason: FinishReason
    usage: Usage


_decode = msgspec.msgpack.Decoder(_Answer).decode


def cache_key(request: CompletionRequest, backend: str, epoch: tuple[object, ...] = ()) -> bytes:
    """Return what equal requests have in common: everything that shapes the answer, and whose they are.

    Args:
        request: What is asked.
        backend: Who is asked.
        epoch: What the settings add.
    """
    parts = [[(type(part).__name__, part) for part in message.parts] for message in request.messages]
    roles = [message.role for message in request.messages]
    return hashlib.sha256(msgspec.json.encode((backend, request, roles, parts, epoch))).digest()


def serve_from_cache(stream: Stream, cache: Cache, key: bytes, ttl: float) -> Stream:
    """Return a stream that replays what is cached under ``key``, or streams and caches it for ``ttl`` seconds.

    Only a text that ended by itself is kept. A store that is down costs the cache, never the answer.
    """

    @asynccontextmanager
    async def replay_or_stream(request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        found = await _look_up(cache, key)
        if found is not None:
            async with aclosing(_replay(found)) as batches:
                yield batches
            return
        async with stream(request) as live, aclosing(_keep(live, cache, key, ttl)) as batches:
            yield batches

    return replay_or_stream


async def _look_up(cache: Cache, key: bytes) -> _Answer | None:
    try:
        found = await cache.get(key)
        return None if found is None else _decode(found)
    except (StoreUnavailableError, msgspec.DecodeError):
        logger.warning("cache_unavailable")
        return None


async def _replay(answer: _Answer) -> AsyncGenerator[Batch, None]:
    yield (Started(),)
    for start in range(0, len(answer.text), PIECE):
        yield (TextDelta(answer.text[start : start + PIECE]),)
    yield (TextEnd(), Completed(answer.finish_reason, answer.usage))


async def _keep(batches: AsyncIterator[Batch], cache: Cache, key: bytes, ttl: float) -> AsyncGenerator[Batch, None]:
    texts: list[str] = []
    plain = True
    async for batch in batches:
        for event in batch:
            match event:
                case TextDelta(text):
                    texts.append(text)
                case Completed("stop", usage) if plain:
                    await _put(cache, key, _Answer("".join(texts), "stop", usage), ttl)
                case Started() | TextEnd() | ThinkingDelta() | ThinkingEnd() | Activity():
                    pass
                case _:
                    # A call, a refusal or an error is told each time by whoever makes it.
                    plain = False
        yield batch


async def _put(cache: Cache, key: bytes, answer: _Answer, ttl: float) -> None:
    try:
        await cache.put(key, msgspec.msgpack.encode(answer), ttl)
    except StoreUnavailableError:
        logger.warning("cache_unavailable")
