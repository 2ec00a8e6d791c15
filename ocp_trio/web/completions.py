"""``POST /v1/chat/completions``: read the request, choose its backend, and leave the rest to its answer."""

import time
from math import inf

import trio
from quart import request
from werkzeug.datastructures import Headers as RequestHeaders

from ocp_trio.completion import CompletionRequest, Sampling
from ocp_trio.openai import sse
from ocp_trio.openai.chunks import ChunkEncoder, CompletionBuilder, new_completion_id
from ocp_trio.openai.images import ImageLimits
from ocp_trio.openai.requests import ChatRequest, parse_chat_request
from ocp_trio.openai.structured import json_format, read_format
from ocp_trio.settings import Settings
from ocp_trio.shaping import Stream, check_format, end_at_stops, hold_to_format
from ocp_trio.web.cache import cache_key
from ocp_trio.web.callers import Caller
from ocp_trio.web.chat import ChatAnswer
from ocp_trio.web.connection import OwnResponse, Send
from ocp_trio.web.ledger import Ledger, charge
from ocp_trio.web.options import Options, read_options
from ocp_trio.web.sharing import share_answers
from ocp_trio.web.sinks import Headers, Sink, StreamSink, WholeSink
from ocp_trio.web.site import Site

__all__ = ["answer_chat"]

BEAT_FRAMES = {"comment": sse.COMMENT, "comment-line": sse.COMMENT_LINE}
"""Heartbeats that are the same on every stream."""


async def answer_chat(site: Site, request_id: str, caller: Caller) -> OwnResponse:
    """Answer the current request.

    Raises:
        OcpError: it cannot be served; nothing has been started.
    """
    arrived = trio.current_time()
    settings = site.settings
    options = read_options(request.headers, settings)
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    chat = parse_chat_request(body, limits=_image_limits(settings), tools_supported=True)
    backend, model = site.backend_for(chat.model)
    taken = next((known.sampling for known in backend.models if known.id == model), ())
    completion = CompletionRequest(
        model=model,
        messages=chat.messages,
        system=chat.system or settings.system_prompt,
        max_tokens=chat.max_tokens,
        effort=chat.reasoning_effort,
        tools=chat.tools,
        tool_choice=chat.tool_choice,
        parallel_tool_calls=chat.parallel_tool_calls,
        stop=chat.stop,
        response_format=json_format(chat.response_format),
        caller=caller.key_id or "",
        session=_session(chat, request.headers),
        sampling=Sampling(**{name: getattr(chat.sampling, name) for name in taken}),
    )
    stream = await _shape(backend.stream, completion, settings)
    charged = await charge(site.store, caller, or_not=settings.store_down == "allow")
    if not chat.bypass_cache:
        stream = _share(stream, completion, backend.name, site)
    ledger = Ledger(
        store=site.store,
        charge=charged,
        caller=caller,
        request=completion,
        request_id=request_id,
        backend=backend.name,
        arrived=arrived,
        starts_at_once=backend.starts_at_once,
    )
    answer = ChatAnswer(
        request_id=request_id,
        stream=stream,
        ledger=ledger,
        request=completion,
        make_sink=lambda send, headers: _make_sink(chat, options, settings, send, headers),
        heartbeat_interval=options.heartbeat_interval if chat.stream else options.keepalive_interval,
        arrived=arrived,
        timeout=settings.timeout,
        lifecycle=site.lifecycle,
        stats=site.stats,
        metrics=site.metrics,
    )
    response = OwnResponse(answer)
    if ignored := [name for name in chat.ignored if name not in taken]:
        response.headers["x-ocp-ignored"] = ", ".join(ignored)
    return response


def _image_limits(settings: Settings) -> ImageLimits:
    return ImageLimits(
        max_count=settings.max_images,
        max_bytes=settings.max_image_bytes,
        max_total_bytes=settings.max_image_total_bytes,
        allow_urls=settings.image_urls,
    )


async def _shape(stream: Stream, completion: CompletionRequest, settings: Settings) -> Stream:
    """Return the stream as the request wants it, whatever the backend does by itself."""
    if completion.stop:
        stream = end_at_stops(stream, completion.stop)
    if completion.response_format:
        wanted = read_format(completion.response_format)
        await check_format(wanted)
        # Around the other: a stop sequence ends an attempt, not the JSON that has been found right.
        stream = hold_to_format(stream, wanted, settings.structured_max_attempts)
    return stream


def _share(stream: Stream, completion: CompletionRequest, backend: str, site: Site) -> Stream:
    """Return the stream as equal requests share it, where that is wanted."""
    store, settings = site.store, site.settings
    # Where the store has just failed it is not asked again before the answer.
    if store is None or (completion.caller and store.state.cause) or settings.cache_ttl == inf:
        return stream
    return share_answers(
        stream,
        store,
        cache_key(completion, backend, site.epoch),
        ttl=settings.cache_ttl,
        timeout=settings.timeout,
        lifecycle=site.lifecycle,
    )


def _session(chat: ChatRequest, headers: RequestHeaders) -> str | None:
    return chat.session or headers.get("x-session-id") or headers.get("x-conversation-id")


def _make_sink(chat: ChatRequest, options: Options, settings: Settings, send: Send, headers: Headers) -> Sink:
    completion_id, created = new_completion_id(), int(time.time())
    if not chat.stream:
        builder = CompletionBuilder(
            completion_id=completion_id, created=created, model=chat.model, show_reasoning=options.reasoning
        )
        return WholeSink(send, headers, builder)
    encoder = ChunkEncoder(
        completion_id=completion_id,
        created=created,
        model=chat.model,
        include_usage=chat.include_usage,
        show_reasoning=options.reasoning,
    )
    beat = BEAT_FRAMES.get(options.heartbeat_format) or encoder.empty_delta()
    return StreamSink(send, headers, encoder, beat=beat, early=settings.early_headers)
