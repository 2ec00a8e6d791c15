"""The server tells how it is: to everybody what is no secret, to callers a little more."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from trio.testing import MockClock
from web_app import WebApp, open_web_app

from ocp_trio.backend_state import BackendState, Login, Plan, PlanWindow
from ocp_trio.completion import Completed, TextDelta
from ocp_trio.errors import StallFacts, UpstreamError, UpstreamStalledError
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ANSWER: list[Step] = [(TextDelta("Hello"),), (Completed("stop"),)]
STALL = UpstreamStalledError(StallFacts("idle", 5, 5, 5, None, 0, 0, visible_output=False, setting="X"))
COUNTERS = ("activeRequests", "succeeded", "errors", "timeouts", "cancelled")


async def health(app: WebApp) -> Any:
    return (await app.get("/health"))[1]


async def test_health_has_the_keys_that_users_of_the_node_proxy_read(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([])) as app:
        await trio.sleep(1.5)
        told = await health(app)

    assert (told["status"], told["uptime"], told["authMode"]) == ("ok", 1500, "none")
    assert told["config"] == {"timeout": 600_000, "maxConcurrent": 8}
    assert set(told["stats"]) == {"totalRequests", *COUNTERS, "queued", "queueRejections"}
    assert set(told["concurrency"]) == {"maxConcurrent", "maxQueue", "inflight", "queued", "queueRejections"}
    assert told["auth"] == {
        "ok": None,
        "okSource": None,
        "okAt": None,
        "lastCheck": None,
        "lastOutcome": None,
        "consecutiveFailures": 0,
    }


async def test_health_tells_the_state_of_each_backend() -> None:
    backend = ScriptedBackend([])
    backend.state = BackendState(
        in_flight=2,
        queued=1,
        queue_rejections=3,
        warm={"idle": 1},
        max_concurrent=2,
        max_queue=5,
        version="2.1.332",
        login=Login(ok=True, ok_source="auth_status", ok_at=NOON, checked_at=NOON, outcome="ok"),
        children=3,
        kills={"SIGTERM": 4},
    )

    async with open_web_app(backend) as app:
        told = await health(app)

    assert told["backends"] == [
        {
            "name": "scripted",
            "version": "2.1.332",
            "slots": {"max": 2, "inUse": 2},
            "queue": {"max": 5, "queued": 1, "rejections": 3},
            "children": 3,
            "kills": {"SIGTERM": 4},
            "pool": {"idle": 1},
        }
    ]
    assert (told["stats"]["queued"], told["concurrency"]["inflight"]) == (1, 2)
    assert (told["auth"]["ok"], told["auth"]["okAt"]) == (True, "2026-12-01T12:00:00.000+00:00")


async def test_counters_add_up_at_every_moment_and_each_request_has_one_outcome(autojump_clock: MockClock) -> None:
    scripts: list[list[Step]] = [
        ANSWER,
        [UpstreamError("no")],
        [(TextDelta("a"),), STALL],
        [RuntimeError("a defect")],
        [86_400.0],
    ]
    totals = []

    async def watch(app: WebApp) -> None:
        while True:
            stats = await app.health()
            totals.append(stats["totalRequests"])
            assert stats["totalRequests"] == sum(stats[name] for name in COUNTERS)
            await trio.sleep(0.5)

    backend = ScriptedBackend([])
    async with open_web_app(backend, timeout=30.0) as app, trio.open_nursery() as nursery:
        nursery.start_soon(watch, app)
        for script in scripts:
            backend._script = script
            await app.ask(stream=True)
        backend._script = [86_400.0]
        async with app.chat(stream=True) as exchange:
            await exchange.head()
            exchange.disconnect()
        stats = await app.health()
        nursery.cancel_scope.cancel()

    assert [stats[name] for name in ("totalRequests", *COUNTERS)] == [6, 0, 1, 2, 2, 1]
    # While the one that timed out was running, and before.
    assert totals.count(5) >= 59


async def test_status_is_short_and_has_the_newest_errors(autojump_clock: MockClock) -> None:
    async with open_web_app(ScriptedBackend([UpstreamError("upstream failed with status 500")])) as app:
        for _ in range(25):
            await app.ask()
        status, told = await app.get("/status")

    assert status == 200
    assert set(told) == {"proxy", "requests", "plan", "recentErrors"}
    assert set(told["proxy"]) == {"status", "version", "uptime", "auth"}
    assert told["requests"] == {
        "total": 25,
        "active": 0,
        "succeeded": 0,
        "errors": 25,
        "timeouts": 0,
        "cancelled": 0,
    }
    assert len(told["recentErrors"]) == 20
    assert told["recentErrors"][-1]["message"] == "upstream failed with status 500"
    assert told["plan"] is None


async def test_usage_tells_what_each_model_did(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([2.0, *ANSWER])
    async with open_web_app(backend) as app:
        await app.ask(model="a")
        backend._script = [4.0, UpstreamError("no")]
        await app.ask(model="a")
        await app.ask(model="b")
        status, told = await app.get("/usage")

    assert status == 200
    assert set(told) == {"status", "fetchedAt", "plan", "proxy", "models"}
    assert told["models"]["a"] == {
        "requests": 2,
        "successes": 1,
        "errors": 1,
        "timeouts": 0,
        "cancelled": 0,
        "avgElapsed": 3000,
        "maxElapsed": 4000,
    }
    assert told["models"]["b"]["errors"] == 1
    assert told["proxy"]["totalRequests"] == 3


async def test_models_with_made_up_names_fill_no_memory() -> None:
    async with open_web_app(ScriptedBackend(ANSWER)) as app:
        for number in range(105):
            await app.ask(model=f"claude-{number}")
        models = (await app.get("/usage"))[1]["models"]

    assert len(models) == 101
    assert models["other"]["requests"] == 5


async def test_usage_tells_the_plans_limits_as_upstream_told_them() -> None:
    backend = ScriptedBackend([])
    windows = {
        "five_hour": PlanWindow("allowed_warning", 0.914, 4_000_000_000),
        "seven_day": PlanWindow("allowed", 0.5, 1_000_000_000),
        "seven_day_opus": PlanWindow("allowed"),
    }
    backend.state = BackendState(plan=Plan(windows, "not in use", NOON))

    async with open_web_app(backend) as app:
        plan = (await app.get("/usage"))[1]["plan"]
        assert (await app.get("/status"))[1]["plan"].keys() == plan.keys()

    session = plan["currentSession"]
    assert (session["utilization"], session["percent"], session["status"]) == (0.914, 91, "allowed_warning")
    assert session["resetsAt"] == "2096-10-02T07:06:40.000+00:00"
    assert session["resetsIn"] > 0
    assert plan["weeklyLimits"]["allModels"]["resetsIn"] == 0
    assert plan["weeklyLimits"]["opus"]["resetsAt"] is None
    assert plan["extraUsage"] == {"status": "not in use"}


@pytest.mark.parametrize("path", ["/status", "/usage", "/metrics", "/logs", "/cache/stats", "/settings"])
async def test_all_but_health_needs_a_key_where_the_mode_asks_for_keys(path: str) -> None:
    async with open_web_app(ScriptedBackend([]), auth_mode="shared", proxy_api_key="shared-secret") as app:
        assert (await app.get(path))[0] == 401
        assert (await app.get("/health"))[0] == 200


async def test_nothing_that_health_tells_is_secret() -> None:
    secrets = {
        "proxy_api_key": "made-up-1",
        "admin_key": "made-up-2",
        "opencode_api_key": "made-up-3",
        "claude_bin": "/made-up-4/claude",
        "store": "redis://made-up-5@localhost",
        "system_prompt": "made-up-6",
    }

    async with open_web_app(ScriptedBackend([]), auth_mode="shared", **secrets) as app:
        assert "made-up" not in json.dumps(await health(app))
