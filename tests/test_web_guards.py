"""Who may call: names, pages and keys."""

import json

import pytest
from web_app import CHAT, WebApp, open_web_app
from werkzeug.datastructures import Headers

from ocp_trio.completion import Completed
from ocp_trio.errors import InvalidApiKeyError, PermissionDeniedError
from ocp_trio.settings import Settings
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange
from ocp_trio.web import guards
from ocp_trio.web.callers import ANYBODY, identify
from ocp_trio.web.known_keys import KnownKeys

STOP = (Completed("stop"),)
KEY = "shared-secret"
SHARED = Settings(auth_mode="shared", proxy_api_key=KEY)


@pytest.mark.parametrize("host", ["", "localhost", "localhost:3456", "127.0.0.1:1", "[::1]:3456", "My.Lan:80"])
def test_names_of_this_machine_are_served(host: str) -> None:
    guards.check_host(host, ["my.lan"])


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:80", "10.9.8.7", "localhost.evil.example"),
        *("[bad", ":80", "localhost/x", "evil@localhost", "localhost:x", "localhost "),
    ],
)
def test_a_foreign_or_malformed_name_is_refused(host: str) -> None:
    with pytest.raises(PermissionDeniedError):
        guards.check_host(host, ["my.lan"])


@pytest.mark.parametrize("origin", [None, "http://localhost:3000", "http://127.0.0.1", "https://my.lan"])
def test_pages_of_this_machine_may_call(origin: str | None) -> None:
    guards.check_origin(origin, ["my.lan"])


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://10.9.8.7", "file://", "http://[bad"])
def test_a_foreign_page_may_not(origin: str) -> None:
    with pytest.raises(PermissionDeniedError):
        guards.check_origin(origin, ["my.lan"])


@pytest.mark.parametrize(
    "fields",
    [
        [("Authorization", f"Bearer {KEY}")],
        [("authorization", f"bearer {KEY}")],
        [("Authorization", f"BEARER   {KEY} ")],
        [("x-api-key", KEY)],
        [("x-api-key", KEY), ("Authorization", f"Bearer {KEY}")],
    ],
)
async def test_the_right_key_is_accepted_in_every_spelling(fields: list[tuple[str, str]]) -> None:
    assert await identify(Headers(fields), SHARED, None, KnownKeys(trusted=False)) == ANYBODY


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer ")],
        [("Authorization", f"Basic {KEY}")],
        [("Authorization", KEY)],
        [("Authorization", f"Bearer {KEY[:-1]}")],
        [("Authorization", f"Bearer {KEY}x")],
        [("Authorization", "Bearer \u00e9\u4e00")],
        [("Authorization", f"Bearer {KEY}"), ("x-api-key", "other")],
        [("Authorization", f"Bearer {KEY}"), ("Authorization", "Bearer other")],
    ],
)
async def test_anything_else_is_not(fields: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidApiKeyError):
        await identify(Headers(fields), SHARED, None, KnownKeys(trusted=False))


async def test_a_page_of_another_site_cannot_start_anything() -> None:
    backend = ScriptedBackend([STOP])

    async with open_web_app(backend) as app:
        for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}):
            status, body = await app.ask({"content-type": "text/plain", **headers})
            assert (status, json.loads(body)["error"]["code"]) == (403, "insufficient_permissions")

    assert backend.requests == []


async def test_the_content_type_decides_nothing() -> None:
    async with open_web_app(ScriptedBackend([STOP])) as app:
        for content_type in ("application/x-www-form-urlencoded", "text/plain", "application/json; charset=latin-1"):
            assert (await app.ask({"content-type": content_type}))[0] == 200


async def test_a_wrong_key_starts_nothing_and_the_right_one_is_served() -> None:
    backend = ScriptedBackend([STOP])

    async with open_web_app(backend, auth_mode="shared", proxy_api_key=KEY) as app:
        async with app.chat({"authorization": "Bearer wrong"}) as exchange:
            assert await exchange.head() == 401
            assert exchange.headers["www-authenticate"] == "Bearer"
            assert json.loads(await exchange.body())["error"]["code"] == "invalid_api_key"
        assert backend.requests == []
        assert (await app.ask({"authorization": f"Bearer {KEY}"}))[0] == 200
        assert (await app.get("/v1/models"))[0] == 401
        assert (await app.get("/health"))[0] == 200


async def preflight(app: WebApp, origin: str, asked: str = "") -> tuple[int, dict[str, str]]:
    fields = {"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": asked}
    async with open_asgi_exchange(app.asgi, CHAT, method="OPTIONS", headers=fields) as exchange:
        await exchange.head()
        await exchange.body()
        return exchange.status, exchange.headers


async def test_a_preflight_needs_no_key() -> None:
    async with open_web_app(ScriptedBackend([]), auth_mode="shared", proxy_api_key=KEY) as app:
        status, headers = await preflight(app, "https://app.example")

    assert status == 204
    assert headers["access-control-allow-origin"] == "https://app.example"
    assert "POST" in headers["access-control-allow-methods"]
    assert {"authorization", "content-type"} <= set(headers["access-control-allow-headers"].split(", "))


@pytest.mark.parametrize(
    "asked",
    [
        # openai-js, the Anthropic SDK and the AI SDK, as a browser sends their names.
        (
            "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,"
            "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout"
        ),
        "anthropic-dangerous-direct-browser-access,anthropic-version,content-type,x-api-key,x-stainless-helper-method",
        "authorization, content-type, user-agent, http-referer, x-title",
        "x-ocp-heartbeat,x-ocp-heartbeat-format,x-session-id",
    ],
)
async def test_a_page_may_send_whatever_headers_its_client_sends(asked: str) -> None:
    async with open_web_app(ScriptedBackend([]), auth_mode="shared", proxy_api_key=KEY) as app:
        status, headers = await preflight(app, "https://app.example", asked)

    assert (status, headers["access-control-allow-headers"]) == (204, asked)


@pytest.mark.parametrize("asked", ["a,", "a b", "é", "a" * 4097, "a: b", ",".join(["x"] * 2049)])
async def test_what_are_no_names_of_headers_is_not_repeated(asked: str) -> None:
    async with open_web_app(ScriptedBackend([]), auth_mode="shared", proxy_api_key=KEY) as app:
        status, headers = await preflight(app, "https://app.example", asked.encode().decode("latin-1"))

    assert status == 204
    assert headers["access-control-allow-headers"] == "authorization, content-type, x-api-key"


async def test_a_page_may_read_which_request_it_was_and_when_to_try_again() -> None:
    headers = {"authorization": f"Bearer {KEY}", "origin": "https://app.example"}
    async with (
        open_web_app(ScriptedBackend([STOP]), auth_mode="shared", proxy_api_key=KEY) as app,
        app.chat(headers) as exchange,
    ):
        await exchange.head()
        await exchange.body()

    assert {"x-request-id", "retry-after"} <= set(exchange.headers["access-control-expose-headers"].split(", "))


async def test_a_preflight_of_a_foreign_page_is_refused_where_no_key_protects_the_server() -> None:
    async with open_web_app(ScriptedBackend([])) as app:
        status, headers = await preflight(app, "https://app.example")

    assert status == 403
    assert "access-control-allow-origin" not in headers
