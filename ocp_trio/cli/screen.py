"""Show things: to a person in aligned columns, to a program as JSON."""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ocp_trio.cli.text import clean

__all__ = ["cell", "facts", "note", "print_json", "progress", "show", "table"]

UNBOUNDED = 10_000
"""Columns of an output that is no terminal: nothing is cut there."""


def _console(*, err: bool = False) -> Console:
    console = Console(stderr=err, markup=False, emoji=False, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = UNBOUNDED
    return console


def cell(value: object, style: str = "") -> Text:
    """Make a cell of a table; None is a dash. What it says cannot be anything but text."""
    return Text("-" if value is None else clean(str(value)), style=style)


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Begin a table; the columns in ``right`` hold numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return made


def facts(*rows: tuple[str, RenderableType]) -> Table:
    """Make a list of names and what holds for them."""
    made = Table.grid(padding=(0, 3, 0, 0))
    for name, value in rows:
        made.add_row(Text(name, style="dim"), value)
    return made


def show(*parts: RenderableType) -> None:
    """Print what is to be seen, a blank line between the parts; without colours where it goes into a file."""
    console = _console()
    for index, part in enumerate(parts):
        with console.capture() as captured:
            # A line of text is left whole, for whoever copies it; the terminal breaks it.
            console.print(part, soft_wrap=isinstance(part, Text))
        lines = captured.get().splitlines()
        # Columns are filled up with blanks, the last one too.
        click.echo("\n".join([""] * bool(index) + [line.rstrip() for line in lines]))


def print_json(value: Any, *, indent: int | None = 2) -> None:  # noqa: ANN401 (whatever JSON can say)
    """Print JSON; beyond ASCII everything is escaped, so that no text in it can act on a terminal."""
    click.echo(json.dumps(value, indent=indent))


def note(text: str) -> None:
    """Tell a person something that is no part of the output."""
    click.echo(text, err=True)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time, for the length of a block; print nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    with _console(err=True).status(Text(clean(what), style="dim")):
        yield
