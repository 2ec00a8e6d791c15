"""``ocp-trio settings``: what the running server goes by."""

from typing import Any

import click
import msgspec
from rich.table import Table

from ocp_trio.cli.api import Api, open_api
from ocp_trio.cli.failures import Failure, NotUsable
from ocp_trio.cli.screen import cell, note, print_json, show, table
from ocp_trio.cli.target import Target, takes_target
from ocp_trio.cli.text import clean

__all__ = ["settings"]


class _Setting(msgspec.Struct, frozen=True):
    value: Any = None
    min: float | None = None
    max: float | None = None
    unit: str | None = None
    desc: str = ""
    env: str = ""
    restart: bool = False
    choices: list[str] = []


class _Change(msgspec.Struct, frozen=True):
    value: Any = None
    error: str | None = None


class _Changes(msgspec.Struct, frozen=True):
    results: dict[str, _Change]


@click.command()
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...")
@takes_target
def settings(target: Target, changes: tuple[str, ...], *, as_json: bool) -> None:
    """Show the settings of the running server, or change some until it is started anew.

    All of it needs the administrator's key (OCP_ADMIN_KEY). --json prints the answer of GET or PATCH /settings.
    """
    wanted = dict(_change(each) for each in changes)
    with open_api(target) as api:
        if wanted:
            _set(api, wanted, as_json=as_json)
            return
        answer = api.get("/settings")
    if as_json:
        print_json(answer.value)
        return
    known = answer.read_as(dict[str, _Setting])
    at_once = {name: each for name, each in known.items() if not each.restart}
    later = {name: each for name, each in known.items() if each.restart}
    show(_listed(at_once, "changes at once"), _listed(later, "needs a restart"))


def _change(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise NotUsable(f"{text!r} is no change of a setting: NAME=VALUE is expected, such as maxConcurrent=4")
    return name, value


def _listed(known: dict[str, _Setting], title: str) -> Table:
    rows = table(title, "value", "", "meaning", right=("value",))
    for name, each in known.items():
        style = "" if each.restart else "bold"
        rows.add_row(cell(name, style), cell(_shown(each.value)), cell(each.unit or "", "dim"), cell(each.desc, "dim"))
    return rows


def _shown(value: object) -> str | None:
    """Return a value as one would write it."""
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _set(api: Api, wanted: dict[str, str], *, as_json: bool) -> None:
    answer = api.ask("PATCH", "/settings", wanted)
    results = answer.read_as(_Changes).results
    if as_json:
        print_json(answer.value)
    else:
        for name, result in results.items():
            if result.error is None:
                note(f"{clean(name)} is now {clean(_shown(result.value) or 'empty')}, until the server is started anew")
    if refused := [result.error for result in results.values() if result.error is not None]:
        raise Failure("; ".join(refused))
