"""``/openapi.json`` describes what is served, all of it and nothing else."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from web_app import CHAT, WebApp, open_web_app

from ocp_trio.completion import (
    Completed,
    Refusal,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.store import open_store
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange
from ocp_trio.testing.backend import Step
from ocp_trio.web.api_document import undescribed

ADMIN = "admin-secret"
ANSWER: list[Step] = [
    (TextDelta("Hello"), ToolCallStart(0, "call_1", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0)),
    (Completed("tool_calls", Usage(input=3, output=5)),),
]
BODY = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}]}


@asynccontextmanager
async def open_app(tmp_path: Path) -> AsyncIterator[WebApp]:
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(ScriptedBackend(ANSWER), store=store, auth_mode="multi", admin_key=ADMIN) as app,
    ):
        yield app


async def document(app: WebApp) -> dict[str, Any]:
    described: dict[str, Any] = (await app.get("/openapi.json"))[1]
    return described


def schema_of(described: dict[str, Any], method: str, path: str, status: int, media: str) -> Any:
    responses = described["paths"][path][method.lower()]["responses"]
    response = responses.get(str(status)) or described["components"]["responses"]["Error"]
    return {**response["content"][media]["schema"], "components": described["components"]}


async def test_every_route_is_in_it_and_nothing_else() -> None:
    async with open_web_app() as app:
        described = await document(app)

        missing = undescribed(app.asgi.url_map, app.asgi.operations)
        assert not missing, f"put @app.describe(...) under the route of {', '.join(missing)}"
        served = {
            (rule.rule.replace("<path:", "{").replace("<", "{").replace(">", "}"), method.lower())
            for rule in app.asgi.url_map.iter_rules()
            for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
            # The dashboard is a page and what that page reads, no API.
            if rule.endpoint != "static" and not rule.rule.startswith("/dashboard")
        }
        assert {(path, method) for path, methods in described["paths"].items() for method in methods} == served


@pytest.mark.parametrize("settings", [{}, {"auth_mode": "shared", "proxy_api_key": "secret"}])
async def test_it_is_valid_and_needs_no_key(settings: dict[str, Any]) -> None:
    async with open_web_app(**settings) as app:
        described = await document(app)

    OpenAPIV31SpecValidator(described).validate()


async def test_it_says_which_endpoints_need_no_key(tmp_path: Path) -> None:
    async with open_app(tmp_path) as app:
        described = await document(app)
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                status, _ = await app.get(path, method.upper())
                assert (status == 401) == (operation.get("security") != [{}]), (method, path)


async def test_each_event_of_a_stream_is_as_it_says() -> None:
    reasoning: list[Step] = [(ThinkingDelta("hm"), Refusal("no"))]
    async with open_web_app(ScriptedBackend(reasoning + ANSWER), reasoning_content=True) as app:
        described = await document(app)
        _, body = await app.ask(stream=True, stream_options={"include_usage": True})

    event = schema_of(described, "POST", CHAT, 200, "text/event-stream")["properties"]["data"]["anyOf"]
    schema = {**event[0]["contentSchema"], "components": described["components"]}
    chunks = [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]
    validator = jsonschema_rs.validator_for(closed(schema))
    for chunk in chunks[:-1]:
        validator.validate(json.loads(chunk))
    assert chunks[-1] == event[1]["const"]
    assert {key for chunk in chunks[:-1] for each in json.loads(chunk)["choices"] for key in each["delta"]} == {
        *("role", "content", "reasoning_content", "refusal", "tool_calls")
    }


def closed(schema: Any) -> Any:
    """Return a schema that allows nothing it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(each) for name, each in schema.items()}
    return {**inner, "additionalProperties": False} if {"type", "properties"} <= set(schema) else inner


ANSWERS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/models", None),
    ("GET", "/v1/models/{name}", None),
    ("POST", CHAT, BODY),
    ("POST", CHAT, BODY | {"n": 0}),
    ("GET", "/health", None),
    ("GET", "/logs", None),
    ("POST", "/api/keys", {"name": "bob"}),
    ("POST", "/api/keys", {"name": 5}),
    ("GET", "/api/keys", None),
    ("PATCH", "/api/keys/{id_or_name}/quota", {"daily": 5}),
    ("GET", "/api/keys/{id_or_name}/quota", None),
    ("DELETE", "/api/keys/{id_or_name}", None),
    ("GET", "/api/usage", None),
    ("GET", "/cache/stats", None),
    ("DELETE", "/cache", None),
    ("GET", "/settings", None),
    ("PATCH", "/settings", {"timeout": 5}),
    ("PATCH", "/settings", {"timeout": []}),
    ("GET", "/openapi.json", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ANSWERS)
async def test_an_answer_is_as_it_says(tmp_path: Path, method: str, path: str, body: Any) -> None:
    headers = {"authorization": f"Bearer {ADMIN}"}
    data = json.dumps(body).encode() if body else b""
    async with open_app(tmp_path) as app:
        described = await document(app)
        create = open_asgi_exchange(app.asgi, "/api/keys", body=b'{"name":"alice"}', headers=headers)
        async with create as exchange:
            assert await exchange.head() == 201
            await exchange.body()
        await app.ask(headers)
        real = path.format(name="scripted", id_or_name="alice") + (
            "?all=true&series=true" if path == "/api/usage" else ""
        )
        async with open_asgi_exchange(app.asgi, real, method=method, body=data, headers=headers) as exchange:
            status = await exchange.head()
            answer = json.loads(await exchange.body())

    media = exchange.headers["content-type"]
    schema = schema_of(described, method, path, status, media)
    jsonschema_rs.validator_for(closed(schema) if status < 400 else schema).validate(answer)
