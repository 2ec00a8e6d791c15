"""Prometheus is told what a server does, and two servers in one process tell of themselves only."""

from math import inf

from prometheus_client.parser import text_string_to_metric_families
from trio.testing import MockClock
from web_app import WebApp, open_web_app

from ocp_trio.backend_state import BackendState, Login
from ocp_trio.completion import Completed, Started, TextDelta
from ocp_trio.errors import StallFacts, UpstreamError, UpstreamStalledError
from ocp_trio.testing import ScriptedBackend, open_asgi_exchange

STALL = UpstreamStalledError(StallFacts("idle", 5, 5, 5, None, 0, 0, visible_output=False, setting="X"))


async def scrape(app: WebApp, accept: str = "") -> tuple[str, str]:
    """Return the media type and the text."""
    async with open_asgi_exchange(app.asgi, "/metrics", method="GET", headers={"accept": accept}) as exchange:
        assert await exchange.head() == 200
        return exchange.headers["content-type"], (await exchange.body()).decode()


async def samples(app: WebApp) -> dict[tuple[str, ...], float]:
    """Return each value by its name and the values of its labels."""
    _, text = await scrape(app)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_completions_are_counted_by_outcome_and_their_times_are_histograms(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([1.5, (Started(1.5),), 1.5, (TextDelta("a"),), 3.5, (Completed("stop"),)])
    async with open_web_app(backend, heartbeat_interval=2.0) as app:
        await app.ask(stream=True)
        backend._script = [UpstreamError("no")]
        await app.ask()
        backend._script = [STALL]
        await app.ask()
        found = await samples(app)

    assert found["ocp_requests_total", "scripted", "ok"] == 1
    assert found["ocp_requests_total", "scripted", "upstream_error"] == 1
    assert found["ocp_requests_total", "scripted", "stalled"] == 1
    assert found["ocp_stalls_total", "scripted"] == 1
    # One in the first silence, one in the second.
    assert found["ocp_heartbeats_total",] == 2
    assert found["ocp_first_delta_seconds_sum", "scripted"] == 3
    assert found["ocp_first_delta_seconds_bucket", "scripted", "2.0"] == 0
    assert found["ocp_first_delta_seconds_bucket", "scripted", "4.0"] == 1
    assert (found["ocp_request_seconds_sum", "scripted"], found["ocp_request_seconds_count", "scripted"]) == (6.5, 3)
    assert found["ocp_queue_wait_seconds_sum", "scripted"] == 1.5


async def test_what_is_true_now_is_read_when_it_is_asked_for() -> None:
    backend = ScriptedBackend([inf])
    backend.state = BackendState(
        in_flight=1,
        queued=2,
        queue_rejections=3,
        max_concurrent=4,
        login=Login(ok=False),
        children=5,
        kills={"SIGTERM": 6, "SIGKILL": 7},
    )
    async with open_web_app(backend) as app, app.chat(stream=True) as exchange:
        await exchange.head()
        found = await samples(app)
        exchange.disconnect()

    assert {name: value for name, value in found.items() if not name[0].startswith("ocp_heartbeats_")} == {
        ("ocp_requests_active",): 1,
        ("ocp_slots", "scripted"): 4,
        ("ocp_slots_in_use", "scripted"): 1,
        ("ocp_queue", "scripted"): 2,
        ("ocp_queue_rejections_total", "scripted"): 3,
        ("ocp_children_alive", "scripted"): 5,
        ("ocp_kills_total", "scripted", "SIGTERM"): 6,
        ("ocp_kills_total", "scripted", "SIGKILL"): 7,
        ("ocp_login_ok", "scripted"): 0,
    }


async def test_two_servers_in_one_process_share_nothing() -> None:
    async with (
        open_web_app(ScriptedBackend([(Completed("stop"),)])) as one,
        open_web_app(ScriptedBackend([(Completed("stop"),)])) as other,
    ):
        await one.ask()

        assert ("ocp_requests_total", "scripted", "ok") in await samples(one)
        assert ("ocp_requests_total", "scripted", "ok") not in await samples(other)


async def test_a_scraper_gets_the_format_that_it_asks_for() -> None:
    async with open_web_app(ScriptedBackend([])) as app:
        plain, _ = await scrape(app)
        openmetrics, text = await scrape(app, "application/openmetrics-text; version=1.0.0")

    assert plain.startswith("text/plain; version=")
    assert openmetrics.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
