"""Whatever is wrong with a request, its answer has one shape, and nothing is started."""

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock
from web_app import CHAT, open_web_app

from ocp_trio.completion import Completed
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange
from ocp_trio.testing.asgi import http_scope

STOP = (Completed("stop"),)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing-here", 404, "not_found"),
        ("GET", "/logsXYZ", 404, "not_found"),
        ("POST", "/", 404, "not_found"),
        ("GET", CHAT, 405, "method_not_allowed"),
        ("DELETE", CHAT, 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/no-such-model", 404, "model_not_found"),
        ("GET", "/logs?n=abc", 400, "invalid_type"),
        ("GET", "/logs?n=-1", 400, "unsupported_value"),
        ("GET", "/logs?n=99999999999999999999", 400, "unsupported_value"),
        ("GET", "/logs?level=loud", 400, "unsupported_value"),
    ],
)
async def test_an_odd_path_or_method_gets_the_four_keys(method: str, path: str, status: int, code: str) -> None:
    async with open_web_app() as app, open_asgi_exchange(app.asgi, path, method=method) as exchange:
        assert await exchange.head() == status
        error = json.loads(await exchange.body())["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert error["code"] == code
        assert exchange.headers["x-request-id"].startswith("req_")
        if status == 405:
            assert exchange.headers["allow"]


@pytest.mark.parametrize("path", ["/v1/models?limit=5", "/health", "/logs?n=1&level=info&event=x"])
async def test_a_query_does_not_change_the_route_and_head_is_answered(path: str) -> None:
    async with open_web_app() as app:
        assert (await app.get(path))[0] == 200
        assert await app.get(path, "HEAD") == (200, None)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"null", b"5", b"{}", b"<a/>", b"\xff", b"[" * 50_000])
async def test_a_body_that_is_no_request_is_a_400_and_starts_nothing(body: bytes) -> None:
    backend = ScriptedBackend([STOP])

    async with open_web_app(backend) as app, open_asgi_exchange(app.asgi, CHAT, body=body) as exchange:
        assert await exchange.head() == 400
        assert json.loads(await exchange.body())["error"]["type"] == "invalid_request_error"
        assert (await app.health())["totalRequests"] == 0

    assert backend.requests == []


async def test_a_body_over_the_limit_is_a_413() -> None:
    async with open_web_app(ScriptedBackend([STOP]), max_body_size=1000) as app:
        status, body = await app.ask(messages=[{"role": "user", "content": "x" * 1000}])

    assert (status, json.loads(body)["error"]["code"]) == (413, "request_too_large")


async def test_a_body_that_does_not_arrive_is_a_408(autojump_clock: MockClock) -> None:
    sent: list[dict[str, Any]] = []
    arriving = [{"type": "http.request", "body": b'{"model"', "more_body": True}]

    async def receive() -> dict[str, Any]:
        if not arriving:
            await trio.sleep_forever()
        return arriving.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async with open_web_app(ScriptedBackend([STOP])) as app:
        await app.asgi(http_scope(CHAT), receive, send)  # type: ignore[arg-type]  # Quart types each message

    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"]["code"] == "request_timeout"
    assert trio.current_time() == 60


async def test_ignored_parameters_are_named_in_a_header() -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app:
        async with app.chat(temperature=0.5, seed=1, unknown_x=1) as exchange:
            assert await exchange.head() == 200
            assert exchange.headers["x-ocp-ignored"] == "temperature, seed, unknown_x"
            await exchange.body()
        async with app.chat(max_tokens=5) as exchange:
            await exchange.head()
            assert "x-ocp-ignored" not in exchange.headers
            await exchange.body()
