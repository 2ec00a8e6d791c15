"""``ocp-trio usage``: what the plan has left, and who used it."""

import click
import msgspec
from rich.console import RenderableType
from rich.text import Text

from ocp_trio.cli.api import Answer, Api, open_api
from ocp_trio.cli.failures import Failure
from ocp_trio.cli.screen import cell, facts, note, print_json, show, table
from ocp_trio.cli.target import Target, takes_target
from ocp_trio.cli.text import clean, count, span

__all__ = ["usage"]

BAR = 20
"""Characters of a full bar."""
HOURS_KEPT = 24 * 400
"""Hours that rows of usage are kept."""


class _Window(msgspec.Struct, frozen=True, rename="camel"):
    utilization: float | None = None
    resets_in: float | None = None


class _Plan(msgspec.Struct, frozen=True, rename="camel"):
    current_session: _Window | None = None
    weekly_limits: dict[str, _Window] = {}


class _Limits(msgspec.Struct, frozen=True, rename="camel"):
    plan: _Plan | None = None


class _Sums(msgspec.Struct, frozen=True):
    key_name: str | None = None
    model: str = ""
    requests: int = 0
    successes: int = 0
    errors: int = 0
    cancelled: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    avg_elapsed_ms: float = 0


class _Accounts(msgspec.Struct, frozen=True, rename="camel"):
    by_key: list[_Sums] = []
    by_model: list[_Sums] = []


@click.command()
@click.option("--hours", type=click.IntRange(1, HOURS_KEPT), default=24, show_default=True, help="How far back.")
@takes_target
def usage(target: Target, *, hours: int, as_json: bool) -> None:
    """Show what the plan has left, and who used it.

    The administrator sees everybody's requests, others their own. --json prints an object with two keys: `plan`, the
    answer of GET /usage, and `accounts`, that of GET /api/usage, or null where the server has none for this key.
    """
    with open_api(target) as api:
        limits = api.get("/usage")
        accounts = _accounts(api, hours)
    if as_json:
        print_json({"plan": limits.value, "accounts": accounts and accounts.value})
        return
    plan = _plan(limits.read_as(_Limits).plan)
    if accounts is None:
        show(plan)
        note("no accounts to show: this server keeps none (CLAUDE_AUTH_MODE=multi turns them on), or not for this key")
        return
    sums = accounts.read_as(_Accounts)
    show(plan, _table("key", sums.by_key, hours), _table("model", sums.by_model, hours))


def _accounts(api: Api, hours: int) -> Answer | None:
    try:
        return api.get("/api/usage", hours=hours, limit=0)
    except Failure as error:
        if error.http_status in {403, 404}:
            return None
        raise


def _plan(plan: _Plan | None) -> RenderableType:
    if plan is None:
        return facts(("plan", cell("not known: upstream has not told of it yet", "dim")))
    weeks = [(f"week, {name}", window) for name, window in plan.weekly_limits.items() if name != "allModels"]
    windows = [("session", plan.current_session), ("week", plan.weekly_limits.get("allModels")), *weeks]
    return facts(*((clean(name), _window(window)) for name, window in windows))


def _window(window: _Window | None) -> Text:
    if window is None or window.utilization is None:
        return cell("not known yet", "dim")
    part = min(max(window.utilization, 0.0), 1.0)
    style = "red" if part >= 0.9 else "yellow" if part >= 0.7 else "green"
    full = round(part * BAR)
    resets = f"  resets in {span(window.resets_in)}" if window.resets_in else ""
    return Text.assemble(("█" * full, style), ("░" * (BAR - full), "dim"), f"  {part:.0%} used", (resets, "dim"))


def _table(title: str, sums: list[_Sums], hours: int) -> RenderableType:
    if not sums:
        return cell(f"no requests in the last {hours} h", "dim")
    numbers = ("requests", "failed", "cancelled", "tokens in", "tokens out", "cost", "mean time")
    rows = table(title, *numbers, right=numbers)
    for each in sums:
        name = each.key_name if title == "key" else each.model
        rows.add_row(
            cell(name),
            cell(count(each.requests)),
            cell(count(each.errors), "red" if each.errors else "dim"),
            cell(count(each.cancelled), "" if each.cancelled else "dim"),
            cell(count(each.tokens_in)),
            cell(count(each.tokens_out)),
            cell(None if each.cost_usd is None else f"${each.cost_usd:,.4f}"),
            cell(f"{each.avg_elapsed_ms / 1000:,.1f} s"),
        )
    return rows
