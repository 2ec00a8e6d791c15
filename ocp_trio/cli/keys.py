"""``ocp-trio keys``: who may call, and how often."""

import sys
from collections.abc import Callable

import click
import msgspec

from ocp_trio.cli.api import Answer, Api, open_api
from ocp_trio.cli.failures import Failure, NotUsable
from ocp_trio.cli.screen import cell, note, print_json, show, table
from ocp_trio.cli.target import Target, takes_target
from ocp_trio.cli.text import clean, clock, count

__all__ = ["keys"]

PERIODS = ("daily", "weekly", "monthly")


class _Key(msgspec.Struct, frozen=True):
    id: str
    name: str
    preview: str = msgspec.field(name="keyPreview", default="")
    created_at: str = ""
    revoked: bool = False
    quota_daily: int | None = None
    quota_weekly: int | None = None
    quota_monthly: int | None = None


class _Keys(msgspec.Struct, frozen=True):
    keys: list[_Key]


class _Made(msgspec.Struct, frozen=True):
    id: str
    key: str
    name: str


class _Allowance(msgspec.Struct, frozen=True):
    limit: int | None
    used: int


class _Quota(msgspec.Struct, frozen=True):
    quota: dict[str, _Allowance]


def _limit(text: str) -> int | str:
    """Read a number of requests; ``none`` is no limit."""
    if text != "none" and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise click.BadParameter(f"{text!r} is neither a number of requests nor `none`")
    return text if text == "none" else int(text)


def _takes_limits(command: Callable[..., None]) -> Callable[..., None]:
    for period in reversed(PERIODS):
        text = f"Requests, {period}; `none` is no limit."
        command = click.option(f"--{period}", type=_limit, metavar="N", help=text)(command)
    return command


@click.group()
def keys() -> None:
    """Make, list and revoke the callers' keys, and set their quotas.

    All of it needs the administrator's key (OCP_ADMIN_KEY) and a server in auth mode multi.
    """


@keys.command("list")
@click.option("--all", "with_revoked", is_flag=True, help="Show revoked keys too.")
@takes_target
def list_keys(target: Target, *, with_revoked: bool, as_json: bool) -> None:
    """List the keys, with a part of each that tells them apart.

    --json prints the answer of GET /api/keys, with all keys.
    """
    with open_api(target) as api:
        answer = api.get("/api/keys")
    if as_json:
        print_json(answer.value)
        return
    rows = table("name", "id", "key", "made", *PERIODS, right=PERIODS)
    shown = [key for key in answer.read_as(_Keys).keys if with_revoked or not key.revoked]
    for key in shown:
        limits = (key.quota_daily, key.quota_weekly, key.quota_monthly)
        cells = [cell(key.name), cell(key.id), cell(key.preview), cell(clock(key.created_at))]
        cells += [cell(None if limit is None else count(limit)) for limit in limits]
        rows.add_row(*cells, style="dim strike" if key.revoked else "")
    if shown:
        show(rows)
    else:
        note("there are no keys yet: make one with `ocp-trio keys add NAME`")


@keys.command()
@click.argument("name")
@_takes_limits
@takes_target
def add(target: Target, name: str, *, as_json: bool, **limits: int | str | None) -> None:
    """Make a key for NAME and print it: this once, it is kept nowhere.

    Standard output is the key and nothing else. --json prints the answer of POST /api/keys.
    """
    with open_api(target) as api:
        answer = api.ask("POST", "/api/keys", {"name": name})
        made = answer.read_as(_Made)
        # Shown before anything else can fail: nobody can ask for it again.
        if as_json:
            print_json(answer.value)
        else:
            click.echo(clean(made.key))
            note(f"key {clean(made.id)} for {clean(made.name)}: keep it now, it is not shown again")
        if any(limit is not None for limit in limits.values()):
            _set_quota(api, made.id, {}, limits)


@keys.command()
@click.argument("id_or_name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@takes_target
def revoke(target: Target, id_or_name: str, *, yes: bool, as_json: bool) -> None:
    """Take a key out of service, for good.

    --json prints the answer of DELETE /api/keys/ID.
    """
    with open_api(target) as api:
        key = _find(api, id_or_name)
        if not yes:
            _ask(f"Revoke the key {clean(key.id)} of {clean(key.name)}, for good?")
        answer = api.ask("DELETE", f"/api/keys/{key.id}")
    if as_json:
        print_json(answer.value)
    else:
        note(f"key {clean(key.id)} of {clean(key.name)} is revoked")


@keys.command()
@click.argument("id_or_name")
@_takes_limits
@takes_target
def quota(target: Target, id_or_name: str, *, as_json: bool, **limits: int | str | None) -> None:
    """Show how much of its quota a key has used; with options, set limits first and leave the others as they are.

    --json prints the answer of GET /api/keys/ID/quota.
    """
    with open_api(target) as api:
        path = f"/api/keys/{_find(api, id_or_name).id}/quota"
        answer = api.get(path)
        if any(limit is not None for limit in limits.values()):
            before = {period: each.limit for period, each in answer.read_as(_Quota).quota.items()}
            _set_quota(api, path.split("/")[3], before, limits)
            answer = api.get(path)
    _show_quota(answer, as_json=as_json)


def _show_quota(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer.value)
        return
    rows = table("period", "used", "limit", right=("used", "limit"))
    for period, each in answer.read_as(_Quota).quota.items():
        spent = each.limit is not None and each.used >= each.limit
        limit = None if each.limit is None else count(each.limit)
        rows.add_row(cell(period), cell(count(each.used), "red" if spent else ""), cell(limit))
    show(rows)


def _set_quota(api: Api, key_id: str, before: dict[str, int | None], limits: dict[str, int | str | None]) -> None:
    wanted = {period: before.get(period) for period in PERIODS}
    wanted |= {period: None if limit == "none" else int(limit) for period, limit in limits.items() if limit is not None}
    api.ask("PATCH", f"/api/keys/{key_id}/quota", wanted)


def _find(api: Api, id_or_name: str) -> _Key:
    """Return a key by its id, or the newest in service with a name: an id stands in a path unharmed, a name may not.

    Raises:
        Failure: there is none.
    """
    known = api.get("/api/keys").read_as(_Keys).keys
    found = [key for key in known if key.id == id_or_name]
    found = found or [key for key in known if key.name == id_or_name and not key.revoked]
    if not found:
        raise Failure(f"there is no key {id_or_name!r} in service: `ocp-trio keys list` shows those that are")
    return found[-1]


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise NotUsable("nobody can be asked here: --yes revokes without asking")
    click.confirm(question, abort=True, err=True)
