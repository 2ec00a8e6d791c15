"""How the server is: ``/health`` for whoever asks, ``/status`` and ``/usage`` for those who may call."""

from datetime import UTC, datetime, timedelta
from math import inf

import trio

from ocp_trio import __version__
from ocp_trio import backend_state as known
from ocp_trio.completion import Backend
from ocp_trio.web import status_answers as told
from ocp_trio.web.callers import Caller
from ocp_trio.web.cancelling import may_see
from ocp_trio.web.ended import Ended
from ocp_trio.web.site import Site
from ocp_trio.web.stats import ModelStats

__all__ = ["health", "plan_usage", "status"]

SESSION = "five_hour"
"""Upstream's name of the limit that ``/usage`` calls the current session."""
WEEK = "seven_day"
"""Upstream's name of the weekly limit of all models; those of one model begin with it."""


def health(site: Site) -> told.Health:
    """Return the state of the server. Nothing in it is secret."""
    settings, counters = site.settings, _counters(site)
    states = [backend.state for backend in site.backends]
    waiting: told.Waiting = {
        "queued": sum(state.queued for state in states),
        "queueRejections": sum(state.queue_rejections for state in states),
    }
    proxy = _proxy(site)
    return {
        "status": proxy["status"],
        "version": proxy["version"],
        "uptime": proxy["uptime"],
        "authMode": settings.auth_mode,
        "instanceName": settings.instance_name,
        "auth": proxy["auth"],
        "backends": [_backend(backend) for backend in site.backends],
        "config": {
            "timeout": 0 if settings.timeout == inf else _milliseconds(settings.timeout),
            "maxConcurrent": settings.max_concurrent,
        },
        "stats": {**counters, **waiting},
        "concurrency": {
            "maxConcurrent": settings.max_concurrent,
            "maxQueue": settings.max_queue,
            "inflight": sum(state.in_flight for state in states),
            **waiting,
        },
        "store": _store(site),
    }


def status(site: Site, caller: Caller) -> told.Status:
    """Return the same in short, with the newest errors that the caller may see."""
    counters = _counters(site)
    return {
        "proxy": _proxy(site),
        "requests": {
            "total": counters["totalRequests"],
            "active": counters["activeRequests"],
            "succeeded": counters["succeeded"],
            "errors": counters["errors"],
            "timeouts": counters["timeouts"],
            "cancelled": counters["cancelled"],
        },
        "plan": _plan(site),
        "recentErrors": [_error(each) for each in site.stats.recent_errors if may_see(site, caller, each.owner)],
    }


def plan_usage(site: Site) -> told.PlanUsage:
    """Return the subscription's limits as far as upstream has told of them, and what each model did."""
    proxy = _proxy(site)
    return {
        "status": proxy["status"],
        "fetchedAt": _iso(datetime.now(UTC)),
        "plan": _plan(site),
        "proxy": {**_counters(site), "uptime": proxy["uptime"]},
        "models": {name: _model(stats) for name, stats in site.stats.models.items()},
    }


def _error(ended: Ended) -> told.ToldError:
    when = datetime.now(UTC) - timedelta(seconds=trio.current_time() - ended.at)
    return {"time": _iso(when), "message": ended.message or ""}


def _proxy(site: Site) -> told.Proxy:
    return {
        "status": "draining" if site.lifecycle.draining else "ok",
        "version": __version__,
        "uptime": _milliseconds(trio.current_time() - site.started),
        "auth": _login(site),
    }


def _login(site: Site) -> told.LoginStatus:
    """Return what is known of the first login that there is."""
    login = next((found for backend in site.backends if (found := backend.state.login)), known.Login())
    return {
        "ok": login.ok,
        "okSource": login.ok_source,
        "okAt": None if login.ok_at is None else _iso(login.ok_at),
        "lastCheck": None if login.checked_at is None else _iso(login.checked_at),
        "lastOutcome": login.outcome,
        "consecutiveFailures": login.failures,
    }


def _backend(backend: Backend) -> told.BackendStatus:
    state = backend.state
    return {
        "name": backend.name,
        "version": state.version,
        "slots": {"max": state.max_concurrent, "inUse": state.in_flight},
        "queue": {"max": state.max_queue, "queued": state.queued, "rejections": state.queue_rejections},
        "children": state.children,
        "kills": state.kills,
        "pool": state.warm,
    }


def _counters(site: Site) -> told.Counters:
    ended = site.stats.ended
    return {
        "totalRequests": site.stats.total,
        "activeRequests": site.lifecycle.active.value,
        "succeeded": ended.successes,
        "errors": ended.errors,
        "timeouts": ended.timeouts,
        "cancelled": ended.cancelled,
    }


def _model(stats: ModelStats) -> told.ModelUsage:
    return {
        "requests": stats.requests,
        "successes": stats.successes,
        "errors": stats.errors,
        "timeouts": stats.timeouts,
        "cancelled": stats.cancelled,
        "avgElapsed": _milliseconds(stats.total_elapsed / stats.requests),
        "maxElapsed": _milliseconds(stats.max_elapsed),
    }


def _plan(site: Site) -> told.PlanStatus | None:
    """Return the first plan that is known; None until upstream has told of one."""
    plan: known.Plan | None = next((found for backend in site.backends if (found := backend.state.plan)), None)
    if plan is None:
        return None
    session = plan.windows.get(SESSION)
    weekly = {name: window for name, window in plan.windows.items() if name.startswith(WEEK)}
    return {
        "currentSession": None if session is None else _window(session),
        "weeklyLimits": {_week(name): _window(window) for name, window in weekly.items()},
        "extraUsage": {"status": plan.overage},
        "seenAt": _iso(plan.seen_at),
    }


def _week(name: str) -> str:
    return "allModels" if name == WEEK else name.removeprefix(f"{WEEK}_")


def _window(window: known.PlanWindow) -> told.PlanWindow:
    resets = None if window.resets_at is None else datetime.fromtimestamp(window.resets_at, UTC)
    return {
        "status": window.status,
        "utilization": window.utilization,
        "percent": None if window.utilization is None else round(100 * window.utilization),
        "resetsIn": None if resets is None else max(0, round((resets - datetime.now(UTC)).total_seconds())),
        "resetsAt": None if resets is None else _iso(resets),
    }


def _store(site: Site) -> told.StoreStatus | None:
    """Return whether the store answers, as far as is known: nobody who asks waits for it."""
    if site.store is None:
        return None
    state = site.store.state
    return {
        "engine": state.engine,
        "ok": not state.cause,
        "cause": state.cause or None,
        "lostRows": site.stats.lost_rows,
    }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _iso(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds")
