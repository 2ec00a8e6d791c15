"""What OpenCode Go refuses is raised before anything is told, and is read only as far as it helps."""

import gzip

import pytest
import trio
from mock_opencode import KEY, chunk, refusal
from opencode_sequences import ask, both_flavours, open_go, request
from sse_script import HttpAnswer, frame
from trio.testing import MockClock

from ocp_trio.errors import (
    InvalidRequestError,
    ModelNotFoundError,
    OcpError,
    UpstreamAuthError,
    UpstreamError,
    UpstreamOverloadedError,
    UpstreamRateLimitError,
    UsageLimitError,
)

PAGE = HttpAnswer(502, b"<html>502 Bad Gateway</html>", {"content-type": "text/html"})


REFUSALS = [
    (refusal(401, "AuthError", "Invalid API key."), UpstreamAuthError, None),
    (refusal(402, "CreditsError", "no payment method", retry_after="60"), UsageLimitError, 60),
    (refusal(429, "RateLimitError", "slow down", retry_after="7"), UpstreamRateLimitError, 7),
    (refusal(429, "GoUsageLimitError", "usage limit reached", retry_after="51105"), UsageLimitError, 51_105),
    (refusal(404, "ModelError", "no such model"), ModelNotFoundError, None),
    (refusal(400, "invalid_request_error", "top_p: is odd"), InvalidRequestError, None),
    (refusal(400, "x", "data_inspection_failed"), InvalidRequestError, None),
    (refusal(400, "data_inspection_failed", "inappropriate"), UpstreamOverloadedError, None),
    (refusal(503, "server_error", "no capacity", retry_after="3"), UpstreamOverloadedError, 3),
    (refusal(500, "server_error", "oops"), UpstreamError, None),
    (PAGE, UpstreamError, None),
    (HttpAnswer(307, b"", {"location": "http://elsewhere.invalid/"}), UpstreamError, None),
    (HttpAnswer(200, b"<html>hello</html>", {"content-type": "text/html; charset=utf-8"}), UpstreamError, None),
    (HttpAnswer(200, b'{"choices":[]}'), UpstreamError, None),
    (HttpAnswer(200, b'{"error":{"type":"rate_limit_error"}}'), UpstreamRateLimitError, None),
    (HttpAnswer(204, b"", {}), UpstreamError, None),
]


@both_flavours
@pytest.mark.parametrize(("answer", "kind", "retry_after"), REFUSALS)
async def test_a_refusal_is_raised_before_anything_is_told(
    autojump_clock: MockClock, model: str, answer: HttpAnswer, kind: type[OcpError], retry_after: float | None
) -> None:
    async with open_go() as go:
        go.provider.script(answer)
        error: OcpError | None = None
        seen: list[object] = []
        try:
            async with go.backend.stream(request(model)) as batches:
                async for batch in batches:
                    seen += batch
        except OcpError as refused:
            error = refused

        assert seen == []
        assert error is not None
        assert type(error) is kind
        assert error.retry_after == retry_after
        assert "html" not in str(error) or "text/html" in str(error)
        assert len(go.provider.requests) == 1


async def test_the_message_of_a_bad_request_is_kept_without_the_key(autojump_clock: MockClock) -> None:
    async with open_go() as go:
        go.provider.script(refusal(400, "invalid_request_error", f"{KEY}: top_p is odd"))

        with pytest.raises(InvalidRequestError, match=r"^upstream refused the request: …: top_p is odd$"):
            async with go.backend.stream(request("kimi-k2.6")) as batches:
                await anext(batches)


async def test_an_endless_error_is_not_read_to_its_end(autojump_clock: MockClock) -> None:
    async with open_go() as go:
        go.provider.script(HttpAnswer(500, b"x" * 2**20))

        assert await ask(go.backend, "kimi-k2.6") == [(0, "UpstreamError")]


async def test_nor_is_one_that_does_not_come(autojump_clock: MockClock) -> None:
    head = b"HTTP/1.1 500 Oops\r\ncontent-length: 10\r\n\r\n"

    async def serve(stream: trio.abc.Stream) -> None:
        await stream.receive_some()
        await stream.send_all(head)

    async with open_go() as go:
        go.provider.serve_instead(serve)

        assert await ask(go.backend, "kimi-k2.6") == [(5, "UpstreamError")]


async def test_a_stream_that_is_compressed_unasked_is_read_all_the_same(autojump_clock: MockClock) -> None:
    body = gzip.compress(chunk({"content": "P"}) + chunk(finish_reason="stop") + frame("[DONE]"))
    async with open_go() as go:
        go.provider.script(HttpAnswer(200, body, {"content-type": "text/event-stream", "content-encoding": "gzip"}))

        assert await ask(go.backend, "kimi-k2.6") == [(0, "S"), (0, "P"), (0, "T")]
