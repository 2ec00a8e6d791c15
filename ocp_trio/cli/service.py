"""``ocp-trio service``: the server as a service of this user's, started at login."""

import os
import sys
from collections.abc import Mapping
from math import ceil
from pathlib import Path

import click

from ocp_trio.cli import environment_file as settings_file
from ocp_trio.cli.failures import NotUsable
from ocp_trio.cli.managers import MANAGERS, run_all
from ocp_trio.cli.own_files import OwnFile, remove, write
from ocp_trio.cli.screen import note, print_json
from ocp_trio.cli.target import json_option
from ocp_trio.cli.text import clean
from ocp_trio.cli.units import MARK
from ocp_trio.errors import SettingError
from ocp_trio.settings import Settings

__all__ = ["service"]

STOP_MARGIN = 15
"""Seconds beyond the server's own grace periods after which it is killed."""

_manager_option = click.option(
    "--manager",
    type=click.Choice(list(MANAGERS)),
    default="launchd" if sys.platform == "darwin" else "systemd",
    show_default=True,
    help="What starts it.",
)


@click.group()
def service() -> None:
    """Install a service that starts the server at login."""


@service.command()
@_manager_option
@click.option("--now", is_flag=True, help="Start it too, and again if it runs already.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@json_option
def install(manager: str, *, now: bool, dry_run: bool, as_json: bool) -> None:
    """Write the service's files, with the settings that are set in this shell.

    Settings go into a file of mode 0600 and nowhere else. What stands there already is kept unless this shell sets it
    anew, so this command may be run again.

    --json prints an object: files (path, mode, state), next (commands to run) and ran (those that were run).
    """
    chosen = MANAGERS[manager](_home())
    values, settings = _settings(chosen.environment_file)
    stop_seconds = ceil(settings.shutdown_grace + settings.kill_grace) + STOP_MARGIN
    command = [sys.executable, "-m", "ocp_trio", "serve"]
    files = [
        OwnFile(chosen.environment_file, _environment_text(values), 0o600),
        OwnFile(chosen.unit_file, chosen.describe(command, stop_seconds), 0o644),
    ]
    if dry_run:
        files[0] = OwnFile(files[0].path, _environment_text(settings_file.shown(values)), 0o600)
        _show_dry_run(files, chosen.start, as_json=as_json)
        return
    states = {each: write(each) for each in files}
    ran = run_all(chosen.restart) if now else []
    told = [{"path": str(each.path), "mode": f"{each.mode:04o}", "state": state} for each, state in states.items()]
    _report(told, [] if now else chosen.start, ran, as_json=as_json)
    if not as_json:
        note(f"\n{chosen.hint}")


@service.command()
@_manager_option
@click.option("--now", is_flag=True, help="Stop it first.")
@json_option
def uninstall(manager: str, *, now: bool, as_json: bool) -> None:
    """Remove the files that `service install` wrote, the one with the settings too, and no others.

    --json prints the same object as install does.
    """
    chosen = MANAGERS[manager](_home())
    ran = run_all(chosen.stop) if now and chosen.unit_file.exists() else []
    removed = [path for path in (chosen.unit_file, chosen.environment_file) if remove(path)]
    told = [{"path": str(path), "state": "removed"} for path in removed]
    # `systemctl enable` has made it; of a unit that is gone, systemctl itself does not remove it.
    if chosen.link and chosen.link.is_symlink() and not chosen.link.exists():
        chosen.link.unlink()
    next_commands = chosen.after_removal if told and not now else []
    if now and told:
        ran += run_all(chosen.reload)
    if not told and not as_json:
        note("there is nothing to remove")
    _report(told, next_commands, ran, as_json=as_json)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise NotUsable("HOME is not set, and this user has no home folder: a service needs one") from error


def _environment_text(values: Mapping[str, str]) -> str:
    return f"# {MARK}\n# Edited by hand, it holds after the next start of the service.\n{settings_file.render(values)}"


def _settings(path: Path) -> tuple[dict[str, str], Settings]:
    """Return what the settings' file is to hold, and what it means.

    Raises:
        NotUsable: a setting is wrong: the service could not start.
    """
    kept = settings_file.parse(path.read_text(), path) if path.exists() else {}
    values = kept | settings_file.chosen(os.environ)
    try:
        return values, Settings.from_environment(values)
    except SettingError as error:
        raise NotUsable(str(error)) from error


def _show_dry_run(files: list[OwnFile], next_commands: list[list[str]], *, as_json: bool) -> None:
    if as_json:
        told = [{"path": str(each.path), "mode": f"{each.mode:04o}", "state": "to be written"} for each in files]
        _report(told, next_commands, [], as_json=True)
        return
    for each in files:
        note(f"{clean(str(each.path))} (mode {each.mode:04o}):")
        click.echo(each.text)


def _report(
    files: list[dict[str, str]], next_commands: list[list[str]], ran: list[list[str]], *, as_json: bool
) -> None:
    lines = [" ".join(each) for each in next_commands]
    if as_json:
        print_json({"files": files, "next": lines, "ran": [" ".join(each) for each in ran]})
        return
    for each in files:
        click.echo(f"{each['state']:10}{clean(each['path'])}")
    if lines:
        click.echo("\nNext:\n" + "\n".join(f"  {line}" for line in lines))
