"""``ocp-trio status``: is it well, and what is it doing."""

from typing import Any

import click
import msgspec
from rich.console import RenderableType
from rich.text import Text

from ocp_trio.cli.api import open_api
from ocp_trio.cli.screen import cell, facts, print_json, show, table
from ocp_trio.cli.target import Target, takes_target
from ocp_trio.cli.text import clean, clock, count, span

__all__ = ["Health", "status"]


class _Stats(msgspec.Struct, frozen=True, rename="camel"):
    total_requests: int = 0
    active_requests: int = 0
    succeeded: int = 0
    errors: int = 0
    timeouts: int = 0
    cancelled: int = 0


class _Concurrency(msgspec.Struct, frozen=True, rename="camel"):
    max_concurrent: int = 0
    max_queue: int = 0
    inflight: int = 0
    queued: int = 0
    queue_rejections: int = 0


class _Auth(msgspec.Struct, frozen=True, rename="camel"):
    ok: bool | None = None
    last_outcome: str | None = None


class _Store(msgspec.Struct, frozen=True, rename="camel"):
    engine: str
    ok: bool
    cause: str | None = None
    lost_rows: int = 0


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """The answer of ``GET /health``, as far as it is shown."""

    status: str
    version: str
    auth_mode: str
    uptime: float = 0
    instance_name: str = ""
    backends: list[Any] = []
    stats: _Stats = _Stats()
    concurrency: _Concurrency = _Concurrency()
    auth: _Auth = _Auth()
    store: _Store | None = None


class _RecentError(msgspec.Struct, frozen=True):
    time: str
    message: str


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    recent_errors: list[_RecentError] = []


@click.command()
@takes_target
def status(target: Target, *, as_json: bool) -> None:
    """Show whether the server is well, and what it is doing.

    --json prints an object with two keys: `health` and `status`, the answers of GET /health and GET /status.
    """
    with open_api(target) as api:
        health = api.get("/health")
        state = api.get("/status")
    if as_json:
        print_json({"health": health.value, "status": state.value})
        return
    errors = state.read_as(_Status).recent_errors
    show(_overview(health.read_as(Health), target.address.url), *([_errors(errors)] if errors else []))


def _overview(health: Health, url: str) -> RenderableType:
    stats, slots = health.stats, health.concurrency
    state = Text.assemble(
        (clean(health.status), "bold green" if health.status == "ok" else "bold yellow"),
        f"  for {span(health.uptime / 1000)}",
    )
    ends = [(stats.succeeded, "succeeded"), (stats.errors, "failed"), (stats.timeouts, "timed out")]
    ends.append((stats.cancelled, "cancelled"))
    told = ", ".join(f"{count(number)} {what}" for number, what in ends if number)
    waiting = f"{slots.queued} of {slots.max_queue} waiting, {count(slots.queue_rejections)} refused"
    return facts(
        ("server", cell(f"{health.instance_name} {health.version} at {url}")),
        ("state", state),
        ("callers", cell("need no key" if health.auth_mode == "none" else f"need a key ({health.auth_mode})")),
        ("backends", cell(", ".join(map(_backend, health.backends)) or None)),
        ("login", _login(health.auth)),
        ("store", _store(health.store)),
        ("running", cell(f"{slots.inflight} of {slots.max_concurrent} slots, {waiting}")),
        ("requests", cell(f"{count(stats.total_requests)}{': ' if told else ''}{told}")),
    )


def _backend(backend: object) -> str:
    """Return a backend's name, and its version where it has one."""
    if not isinstance(backend, dict):
        return str(backend)
    return " ".join(str(backend[name]) for name in ("name", "version") if backend.get(name))


def _login(auth: _Auth) -> Text:
    if auth.ok is None:
        return cell("not known yet", "dim")
    if auth.ok:
        return cell("yes", "green")
    return cell(f"no ({auth.last_outcome or 'refused'}): `ocp-trio doctor` says what to do", "red")


def _store(store: _Store | None) -> Text:
    if store is None:
        return cell("none is kept", "dim")
    lost = f", {count(store.lost_rows)} rows of usage lost" if store.lost_rows else ""
    if store.ok:
        return cell(f"{store.engine}{lost}", "yellow" if lost else "")
    return cell(f"{store.engine} is down ({store.cause or 'no cause told'}){lost}", "red")


def _errors(errors: list[_RecentError]) -> RenderableType:
    rows = table("when", "recent errors")
    for each in errors[-10:]:
        rows.add_row(cell(clock(each.time), "dim"), cell(each.message))
    return rows
