"""``POST /v1/chat/completions``: read the request, choose its backend, and leave the rest to its answer."""

import time

import trio
from quart import request
from werkzeug.datastructures import Headers as RequestHeaders

from ocp_trio.completion import CompletionRequest
from ocp_trio.openai import sse
from ocp_trio.openai.chunks import ChunkEncoder, CompletionBuilder, new_completion_id
from ocp_trio.openai.requests import ChatRequest, parse_chat_request
from ocp_trio.settings import Settings
from ocp_trio.web.chat import ChatAnswer
from ocp_trio.web.connection import OwnResponse, Send
from ocp_trio.web.sinks import Headers, Sink, StreamSink, WholeSink
from ocp_trio.web.site import Site

__all__ = ["answer_chat"]

BEAT_FRAMES = {"comment": sse.COMMENT, "comment-line": sse.COMMENT_LINE}
"""Heartbeats that are the same on every stream."""


def _session(chat: ChatRequest, headers: RequestHeaders) -> str | None:
    return chat.session or headers.get("x-session-id") or headers.get("x-conversation-id")


def _stream_sink(chat: ChatRequest, settings: Settings, send: Send, headers: Headers) -> Sink:
    encoder = ChunkEncoder(
        completion_id=new_completion_id(),
        created=int(time.time()),
        model=chat.model,
        include_usage=chat.include_usage,
        show_reasoning=settings.reasoning_content,
    )
    beat = BEAT_FRAMES.get(settings.heartbeat_format) or encoder.empty_delta()
    return StreamSink(send, headers, encoder, beat=beat, early=settings.early_headers)


def _whole_sink(chat: ChatRequest, settings: Settings, send: Send, headers: Headers) -> Sink:
    builder = CompletionBuilder(
        completion_id=new_completion_id(),
        created=int(time.time()),
        model=chat.model,
        show_reasoning=settings.reasoning_content,
    )
    return WholeSink(send, headers, builder)


async def answer_chat(site: Site, request_id: str) -> OwnResponse:
    """Answer the current request.

    Raises:
        OcpError: it cannot be served; nothing has been started.
    """
    arrived = trio.current_time()
    settings = site.settings
    body = await request.get_data(cache=True, as_text=False, parse_form_data=False)
    chat = parse_chat_request(body)
    backend, model = site.backend_for(chat.model)
    make_sink = _stream_sink if chat.stream else _whole_sink
    answer = ChatAnswer(
        request_id=request_id,
        backend=backend,
        request=CompletionRequest(
            model=model,
            messages=chat.messages,
            system=chat.system or settings.system_prompt,
            max_tokens=chat.max_tokens,
            effort=chat.reasoning_effort,
        ),
        make_sink=lambda send, headers: make_sink(chat, settings, send, headers),
        heartbeat_interval=settings.heartbeat_interval if chat.stream else settings.nonstream_keepalive,
        arrived=arrived,
        timeout=settings.timeout,
        session=_session(chat, request.headers),
        lifecycle=site.lifecycle,
        stats=site.stats,
    )
    response = OwnResponse(answer)
    if chat.ignored:
        response.headers["x-ocp-ignored"] = ", ".join(chat.ignored)
    return response
