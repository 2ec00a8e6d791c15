"""``ocp-trio doctor``: what is wrong with this machine, and the next step."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.table import Column, Table
from rich.text import Text

from ocp_trio.claude.command import child_environment
from ocp_trio.cli import checks
from ocp_trio.cli.checks import Finding
from ocp_trio.cli.screen import cell, print_json, progress, show
from ocp_trio.cli.target import json_option

__all__ = ["doctor"]

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "wrong": ("✗", "bold red")}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, as_json: bool) -> None:
    """Check this machine, and say the next step where something is wrong.

    Looked at are the settings of this shell, Python, the claude CLI with its version and login, the port, the store,
    and the folder ~/.ocp. Nothing is made or changed, but that a store becomes its owner's alone, as the server sees
    to as well. Exit status 1 means that something is wrong.

    --json prints an object: ok, and checks (name, state: ok, warning or wrong; found; step or null).
    """
    findings = []
    with _silent_logs():
        for finding in _examine():
            findings.append(finding)
            if not as_json:
                show(_row(finding))
    ok = all(each.state != "wrong" for each in findings)
    if as_json:
        print_json({"ok": ok, "checks": [each._asdict() for each in findings]})
    ctx.exit(0 if ok else 1)


def _examine() -> Iterator[Finding]:
    """Make one check after the other; what rests on settings is left out where those are wrong."""
    environment = dict(os.environ)
    settings, finding = checks.check_settings(environment)
    yield finding
    yield checks.check_python()
    binary, finding = checks.check_claude(environment)
    yield finding
    if binary is not None:
        child = child_environment(environment, also=settings.child_env if settings else ())
        for what, check in (("version", checks.check_version), ("login", checks.check_login)):
            with progress(f"asking claude for its {what}"):
                finding = check(binary, child)
            yield finding
    if settings is not None:
        yield checks.check_port(settings)
        with progress("opening the store"):
            finding = checks.check_store(settings)
        yield finding
    yield checks.check_folder()


def _row(finding: Finding) -> Table:
    mark, style = _MARKS[finding.state]
    row = Table.grid(Column(width=1), Column(width=8), Column(overflow="fold"), padding=(0, 1, 0, 0))
    row.add_row(Text(mark, style=style), finding.name, cell(finding.found))
    if finding.step is not None:
        row.add_row("", "", Text.assemble(("next: ", "bold"), cell(finding.step)))
    return row


@contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep what the parts that are tried would log from a terminal, for the length of a block."""
    logger, nowhere = logging.getLogger("ocp_trio"), logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        yield
    finally:
        logger.removeHandler(nowhere)
