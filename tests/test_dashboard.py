"""The dashboard, in a real browser: what runs is seen and ended there, by anybody, and nothing else happens."""

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from axe import axe_script
from browser import Browser, open_browser
from fake_program import install
from fake_script import api_error, hang, prompt, success, text
from raw_client import CHAT
from selenium.webdriver.common.keys import Keys
from server_process import Server, shared_server
from watching import Runs, wait_gone

ADMIN = "admin-secret"
HOSTILE = "<img src=x onerror=1>"
Keyring = dict[str, str]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("claude"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_open_to_all(program: Path, browser: Browser) -> Iterator[Server]:
    """A server that asks nobody for a key; its streams beat ten times a second."""
    with shared_server(program, CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        yield server


@pytest.fixture(scope="module")
def shared_for_many(program: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server where everybody has a key of his own."""
    store = tmp_path_factory.mktemp("store") / "store.db"
    settings = {"CLAUDE_AUTH_MODE": "multi", "OCP_ADMIN_KEY": ADMIN, "OCP_STORE": str(store)}
    with shared_server(program, **settings) as server:
        yield server


@pytest.fixture
def open_to_all(shared_open_to_all: Server) -> Server:
    """The first of them, with nothing of another test running."""
    trio.run(shared_open_to_all.wait_idle)
    return shared_open_to_all


@pytest.fixture
def for_many(shared_for_many: Server) -> Server:
    """The second, likewise."""
    trio.run(shared_for_many.wait_idle)
    return shared_for_many


@pytest.fixture(scope="module")
def keyring(shared_for_many: Server) -> Keyring:
    """The keys of those who use the second."""
    return {
        name: call(shared_for_many, "POST", "/api/keys", ADMIN, {"name": name})["key"] for name in ("alice", HOSTILE)
    }


@pytest.fixture
def runs(program: Path) -> Runs:
    return Runs(program.parent)


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """Check afterwards that the page had nothing to complain of, and asked nobody but its own server."""
    yield browser
    said, hosts = browser.logs()
    assert said == []
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", host) for host in hosts), hosts


def call(server: Server, method: str, path: str, key: str = "", body: Any = None) -> Any:
    """Call an endpoint, and return what it answers."""
    with asking(server, method, path, key, body) as response:
        return json.loads(response.read())


@contextmanager
def asking(
    server: Server, method: str, path: str, key: str = "", body: Any = None
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request(method, path, json.dumps(body), {"authorization": f"Bearer {key}"} if key else {})
    response = connection.getresponse()
    try:
        yield response
    finally:
        response.close()
        connection.close()


@contextmanager
def streaming(server: Server, *steps: Any, key: str = "") -> Iterator[http.client.HTTPResponse]:
    """Ask for a stream, and leave it at the end of the block."""
    body = {"model": "sonnet", "stream": True, "messages": [{"role": "user", "content": prompt(*steps)}]}
    with asking(server, "POST", CHAT, key, body) as response:
        yield response


def sign_in(page: Browser, server: Server, key: str, **screen: Any) -> None:
    page.open(f"{server.url}/dashboard", **screen)
    page.see("#sign-in")
    page.find("#key").send_keys(key + Keys.ENTER)
    page.see("#connection", "Live")


# Streams


def test_a_stream_appears_beats_and_is_cancelled_from_the_page(page: Browser, open_to_all: Server, runs: Runs) -> None:
    page.open(f"{open_to_all.url}/dashboard")
    page.see("#nothing")

    with streaming(open_to_all, text("a", "b"), hang()) as response:
        page.see("#running li", "claude-sonnet")
        page.wait("Number(document.querySelector('#running li .value:nth-of-type(6) span:last-child').textContent) > 3")
        page.see("#running li[data-state=running] .value", "deltas2")
        [child] = runs.all()
        button = page.find("#running button")
        button.click()
        assert button.text == "Sure?"
        assert page.find("#running li").get_attribute("data-state") == "running"
        button.click()

        assert b'"code":"cancelled"' in response.read()
        trio.run(wait_gone, child.pid)
        page.see("#running li[data-state=ended]", "cancelled")
        page.see("#nothing")


def test_a_stream_is_cancelled_by_keyboard_and_the_focus_goes_on(
    page: Browser, open_to_all: Server, runs: Runs
) -> None:
    page.open(f"{open_to_all.url}/dashboard")
    with streaming(open_to_all, text("a"), hang()) as first, streaming(open_to_all, text("b"), hang()) as second:
        page.see("#running li:nth-child(2)")
        page.run("document.querySelector('.skip').focus()")
        page.keys(Keys.ENTER, Keys.TAB)
        focused = page.focused().accessible_name
        assert re.fullmatch(r"Cancel: claude-sonnet-\S+", focused)

        page.keys(Keys.ENTER, Keys.ENTER)

        page.see("#running li[data-state=ended]")
        assert page.focused().accessible_name == focused
        page.keys(Keys.ENTER, Keys.ENTER)
        page.see("#running li[data-state=ended] + li[data-state=ended]")
        assert page.focused().get_attribute("id") == "streams"
        assert all(b'"code":"cancelled"' in response.read() for response in (first, second))


def test_one_press_alone_is_taken_back(page: Browser, open_to_all: Server) -> None:
    page.open(f"{open_to_all.url}/dashboard")
    with streaming(open_to_all, text("a"), hang()):
        page.see("#running button")
        page.find("#running button").click()
        page.keys(Keys.TAB)

        button = page.find("#running button")
        assert (button.text, button.accessible_name.partition(":")[0]) == ("Cancel", "Cancel")


def test_a_request_that_waits_for_a_slot_is_seen_to_wait(page: Browser, program: Path) -> None:
    with shared_server(program, CLAUDE_MAX_CONCURRENT="1", CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        page.open(f"{server.url}/dashboard")
        with streaming(server, text("a"), hang()), streaming(server, text("a"), hang()):
            page.see("#running li[data-state=queued]", "waits for its turn")
            page.see("#queue", "1")
            page.see("#slots", "1")
        page.leave()


def test_a_server_that_has_come_back_is_followed_again(browser: Browser, program: Path) -> None:
    with shared_server(program) as server:
        port = str(server.port)
        browser.open(f"{server.url}/dashboard")
        browser.see("#connection", "Live")
    browser.see("#connection", "Connection lost")
    with shared_server(program, CLAUDE_PROXY_PORT=port):
        browser.see("#connection", "Live")
        browser.leave()


# Keys


def test_a_key_is_asked_for_kept_in_the_tab_and_forgotten(browser: Browser, for_many: Server, keyring: Keyring) -> None:
    browser.open(f"{for_many.url}/dashboard")
    browser.see("#sign-in")
    assert not browser.find("#content").is_displayed()
    browser.find("#key").send_keys("wrong" + Keys.ENTER)
    browser.see("#sign-in-problem", "the API key is wrong")
    [refused] = browser.logs()[0]
    assert "401" in refused

    browser.find("#key").send_keys(keyring["alice"] + Keys.ENTER)
    browser.see("#who", "alice")
    assert keyring["alice"] not in browser.driver.current_url
    assert browser.run("return [localStorage.length, document.cookie]") == [0, ""]
    assert not browser.find("#keys-panel").is_displayed()

    browser.find("#session").click()
    browser.see("#sign-in")
    assert browser.run("return sessionStorage.length") == 0
    assert browser.logs()[0] == []


def test_where_nobody_needs_a_key_the_administrator_may_still_sign_in(
    page: Browser, program: Path, tmp_path: Path
) -> None:
    with shared_server(program, OCP_ADMIN_KEY=ADMIN, OCP_STORE=str(tmp_path / "store.db")) as server:
        page.open(f"{server.url}/dashboard")
        page.see("#session", "Sign in as administrator")
        page.find("#session").click()
        page.find("#key").send_keys("wrong" + Keys.ENTER)
        page.see("#sign-in-problem", "not the administrator's key")
        assert page.find("#content").is_displayed()

        page.find("#key").send_keys(ADMIN + Keys.ENTER)
        page.see("#who", "admin")
        page.see("#keys-panel", "Make a key")
        page.find("#session").click()
        page.see("#session", "Sign in as administrator")
        assert not page.find("#keys-panel").is_displayed()
        page.leave()


def test_each_key_sees_its_own_streams(page: Browser, for_many: Server, keyring: Keyring) -> None:
    with (
        streaming(for_many, text("a"), hang(), key=keyring[HOSTILE]),
        streaming(for_many, text("a"), hang(), key=keyring["alice"]),
    ):
        sign_in(page, for_many, keyring["alice"])
        page.see("#running li", "alice")
        assert len(page.driver.find_elements("css selector", "#running li")) == 1
        page.leave()


def test_a_hostile_name_is_text_wherever_it_stands(page: Browser, for_many: Server, keyring: Keyring) -> None:
    failing = [text("a"), api_error("<script>window.hostile = 1</script>", error="overloaded", status=529)]
    with streaming(for_many, *failing, key=keyring[HOSTILE]) as response:
        response.read()
    with streaming(for_many, text("a"), hang(), key=keyring[HOSTILE]):
        sign_in(page, for_many, ADMIN)
        for place in ("#running .owner", "#keys b", "#errors"):
            page.see(place, HOSTILE)
        page.find("[data-choice=by] label:last-child").click()
        page.see(".series", HOSTILE)

        assert page.run("return document.querySelectorAll('main img').length") == 0
        assert page.run("return window.hostile === undefined")
        page.leave()


def test_no_script_of_the_page_can_make_markup_of_text(browser: Browser, open_to_all: Server) -> None:
    browser.open(f"{open_to_all.url}/dashboard")
    browser.see("#connection", "Live")

    attempt = "try { document.createElement('p').innerHTML = '<b>x</b>'; return 'made' } catch (e) { return e.name }"
    assert browser.run(attempt) == "TypeError"
    browser.logs()


def test_the_administrator_makes_limits_and_revokes_a_key(page: Browser, for_many: Server) -> None:
    sign_in(page, for_many, ADMIN)
    page.find("#new-name").send_keys("bob" + Keys.ENTER)
    page.see("#made", "The key of bob")
    secret = page.run("return document.querySelector('#made input').value")
    assert page.focused().get_attribute("value") == secret
    with asking(for_many, "GET", "/api/usage", secret) as response:
        assert response.status == 200

    page.see("#keys li", "bob")
    row = "[...document.querySelectorAll('#keys li')].find((each) => each.textContent.includes('bob'))"
    page.run(f"{row}.querySelector('summary').click()")
    page.run(f"{row}.querySelector('input').focus()")
    page.keys("7", Keys.ENTER)
    page.see("#keys li summary", "0 of 7 a day")
    assert call(for_many, "GET", "/api/keys/bob/quota", ADMIN)["quota"]["daily"] == {"limit": 7, "used": 0}

    page.run(f"{row}.querySelector('.danger').focus()")
    page.keys(Keys.ENTER, Keys.ENTER)
    page.see("#keys li.revoked", "bob")
    with asking(for_many, "GET", "/api/usage", secret) as response:
        assert response.status == 401


# Usage and errors


def test_usage_is_drawn_by_model_and_by_key_and_told_as_a_table(
    page: Browser, for_many: Server, keyring: Keyring
) -> None:
    with streaming(for_many, text("a"), success(usage=(10, 5, 100, 0)), key=keyring["alice"]) as response:
        response.read()
    sign_in(page, for_many, keyring["alice"])

    page.see(".series", "claude-sonnet")
    page.find("[data-choice=measure] label:nth-of-type(3)").click()
    page.find("[data-choice=by] label:last-child").click()
    page.find("#usage summary").click()

    page.see("#usage table th", "alice")
    label = page.find("#usage svg").get_attribute("aria-label")
    assert re.fullmatch(r"Tokens in by key, last 24 hours: \d+ in all", label or "")
    drawn = page.find("#usage svg rect title").get_attribute("textContent")
    assert "alice: " in (drawn or "")


def test_without_a_store_it_says_how_to_have_one(page: Browser, open_to_all: Server) -> None:
    page.open(f"{open_to_all.url}/dashboard")
    page.see("#usage", "set OCP_STORE to a path")


def test_an_error_is_listed_with_what_its_client_was_told(page: Browser, open_to_all: Server) -> None:
    page.open(f"{open_to_all.url}/dashboard")
    with streaming(open_to_all, text("a"), api_error("API Error", error="overloaded", status=529)) as response:
        response.read()

    page.see("#errors li code", "overloaded")
    page.see("#errors li .message", "upstream is overloaded")


# For everybody


@contextmanager
def everything_shown(page: Browser, server: Server, keyring: Keyring, **screen: Any) -> Iterator[None]:
    """Show the page with something in each of its parts."""
    with streaming(
        server, text("a"), api_error("API Error", error="overloaded", status=529), key=keyring["alice"]
    ) as r:
        r.read()
    with streaming(server, text("a"), hang(), key=keyring[HOSTILE]):
        sign_in(page, server, ADMIN, **screen)
        for place in ("#running li", "#errors li", "#keys li", ".series li"):
            page.see(place)
        page.run("for (const each of document.querySelectorAll('details')) each.open = true")
        yield
        page.leave()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1180, 360])
def test_an_auditor_of_accessibility_finds_nothing(
    page: Browser, for_many: Server, keyring: Keyring, scheme: str, width: int
) -> None:
    with everything_shown(page, for_many, keyring, scheme=scheme, width=width):
        background = page.run("return getComputedStyle(document.body).backgroundColor")
        found = page.audit(axe_script())

    assert background == {"light": "rgb(246, 246, 243)", "dark": "rgb(19, 21, 23)"}[scheme]
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_drawn_stands_out_from_its_ground(
    page: Browser, for_many: Server, keyring: Keyring, scheme: str
) -> None:
    names = [*(f"s{number}" for number in range(7)), "accent", "beat", "bad", "edge"]
    with everything_shown(page, for_many, keyring, scheme=scheme):
        read = "getComputedStyle(document.documentElement).getPropertyValue"
        colours = {
            name: page.run(f"return {read}.call(getComputedStyle(document.documentElement), '--{name}')")
            for name in ("panel", "muted", *names)
        }

    assert [name for name in names if contrast(colours[name], colours["panel"]) < 3] == []
    assert contrast(colours["muted"], colours["panel"]) >= 4.5


def contrast(one: str, other: str) -> float:
    """Return WCAG's contrast of two colours, ``#rrggbb`` each."""
    high, low = sorted(map(luminance, (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = (int(colour.strip()[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_reaches_over_the_edge_of_a_small_screen(
    page: Browser, for_many: Server, keyring: Keyring, width: int
) -> None:
    with everything_shown(page, for_many, keyring, width=width):
        assert page.run("return document.documentElement.scrollWidth") <= width
