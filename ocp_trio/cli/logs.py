"""``ocp-trio logs``: what the server says of itself."""

import time
from typing import Any

import click
import msgspec
from rich.text import Text

from ocp_trio.cli.api import Api, open_api
from ocp_trio.cli.screen import note, print_json, show
from ocp_trio.cli.target import Target, takes_target
from ocp_trio.cli.text import clean, clock

__all__ = ["logs"]

INTERVAL = 1.0
"""Seconds between two looks for newer entries."""
ALL = 10_000
"""More entries than a server keeps."""

_STYLES = {"warning": "yellow", "error": "red", "critical": "bold red"}


class _Page(msgspec.Struct, frozen=True):
    entries: list[dict[str, Any]]
    cursor: str = ""
    missed: int = 0


@click.command()
@click.option("-n", "number", type=click.IntRange(0, ALL), default=50, show_default=True, help="Entries at most.")
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error", "critical"]), help="Only this level.")
@click.option("--event", help="Only this event, such as request_end.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@takes_target
def logs(target: Target, *, number: int, level: str | None, event: str | None, follow: bool, as_json: bool) -> None:
    """Show the newest log entries, or follow them.

    --json prints an entry of GET /logs per line, for jq and its like.
    """
    with open_api(target) as api:
        page = _page(api, number, level, event)
        _print(page, as_json=as_json)
        while follow:
            time.sleep(INTERVAL)
            page = _page(api, ALL, level, event, after=page.cursor)
            if page.missed:
                note(f"{page.missed} entries came and went meanwhile: the server keeps the newest only")
            _print(page, as_json=as_json)


def _page(api: Api, number: int, level: str | None, event: str | None, *, after: str | None = None) -> _Page:
    return api.get("/logs", n=number, level=level, event=event, after=after).read_as(_Page)


def _print(page: _Page, *, as_json: bool) -> None:
    for entry in page.entries:
        if as_json:
            print_json(entry, indent=None)
        else:
            show(_line(entry))


def _line(entry: dict[str, Any]) -> Text:
    """Return an entry as one line: when, how grave, what, and its fields."""
    when, level, event = (str(entry.get(name, "")) for name in ("ts", "level", "event"))
    line = Text.assemble(
        (clock(when), "dim"), "  ", (f"{clean(level):7}", _STYLES.get(level, "dim")), "  ", (clean(event), "bold")
    )
    for name, value in entry.items():
        if name not in {"ts", "level", "event"}:
            shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            line.append_text(Text.assemble("  ", (f"{clean(name)}=", "dim"), clean(shown)))
    return line
