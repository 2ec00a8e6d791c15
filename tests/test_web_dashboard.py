"""The dashboard's files run in a browser, and nothing but them."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from web_app import open_web_app

from ocp_trio.testing import AsgiExchange, open_asgi_exchange
from ocp_trio.web.dashboard import PAGES


@asynccontextmanager
async def getting(path: str, **settings: str) -> AsyncIterator[AsgiExchange]:
    async with open_web_app(**settings) as app, open_asgi_exchange(app.asgi, path, method="GET") as exchange:
        await exchange.head()
        yield exchange


@pytest.mark.parametrize("path", PAGES)
async def test_each_needs_no_key_and_allows_nothing_from_elsewhere(path: str) -> None:
    async with getting(path, auth_mode="shared", proxy_api_key="secret") as exchange:
        assert exchange.status == 200
        assert await exchange.body() == PAGES[path][0]

    policy = dict(each.strip().split(" ", 1) for each in exchange.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert exchange.headers["x-content-type-options"] == "nosniff"
    assert exchange.headers["x-frame-options"] == "DENY"
    assert exchange.headers["referrer-policy"] == "no-referrer"
    assert exchange.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dashboard", "text/html; charset=utf-8"),
        ("/dashboard/app.js", "text/javascript; charset=utf-8"),
        ("/dashboard/style.css", "text/css; charset=utf-8"),
        ("/dashboard/icon.svg", "image/svg+xml"),
    ],
)
async def test_each_has_its_type(path: str, kind: str) -> None:
    async with getting(path) as exchange:
        assert exchange.headers["content-type"] == kind
        await exchange.body()


@pytest.mark.parametrize("path", ["/dashboard/index.html", "/dashboard/none", "/dashboard/..%2fsite.py"])
async def test_there_is_nothing_else(path: str) -> None:
    async with open_web_app() as app:
        status, answer = await app.get(path)

    assert (status, answer["error"]["code"]) == (404, "not_found")


async def test_a_slash_too_many_leads_to_the_page() -> None:
    async with getting("/dashboard/", auth_mode="shared", proxy_api_key="secret") as exchange:
        # Relative: a proxy in front may serve all of this below a path of its own.
        assert (exchange.status, exchange.headers["location"]) == (308, "../dashboard")
        await exchange.body()


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/app.js", "/dashboard/events"])
@pytest.mark.parametrize("header", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
async def test_no_name_that_points_at_this_machine_and_no_page_of_another_site_gets_it(
    path: str, header: dict[str, str]
) -> None:
    async with open_web_app() as app:
        assert (await app.get(path, **header))[0] == 403


@pytest.mark.parametrize("path", PAGES)
def test_none_names_another_host_or_holds_a_script_or_style_of_its_own(path: str) -> None:
    text = PAGES[path][0].decode()

    assert set(re.findall(r"\w+://[\w.]+", text)) <= {"http://www.w3.org"}
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=\"|javascript:", text)


def test_no_script_puts_in_what_it_is_told_as_markup() -> None:
    scripts = [content.decode() for path, (content, _) in PAGES.items() if path.endswith(".js")]

    assert len(scripts) > 5
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|eval\("
    assert not [script for script in scripts if re.search(markup, script)]


async def test_no_other_page_may_read_what_it_shows() -> None:
    headers = {"origin": "http://10.9.8.7"}
    async with (
        open_web_app(auth_mode="shared", proxy_api_key="secret") as app,
        open_asgi_exchange(app.asgi, "/dashboard/events", method="GET", headers=headers) as exchange,
    ):
        assert await exchange.head() == 401
        await exchange.body()

    assert "access-control-allow-origin" not in exchange.headers
