"""The ``ocp-trio`` command."""

import os
import sys
from functools import partial

import click
import trio

from ocp_trio import __version__
from ocp_trio.errors import SettingError
from ocp_trio.server import run_server
from ocp_trio.settings import Settings

__all__ = ["main"]

BAD_SETTING = 2
"""Exit status when a setting is wrong."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ocp-trio")
def main() -> None:
    """An OpenAI-compatible streaming proxy over the claude CLI."""


@main.command()
@click.option("--host", help="Address to listen on (CLAUDE_BIND).")
@click.option("--port", help="Port to listen on; 0 takes a free one (CLAUDE_PROXY_PORT).")
@click.option("--demo", is_flag=True, help="Also serve the model `demo`, which needs no CLI.")
def serve(host: str | None, port: str | None, *, demo: bool) -> None:
    """Serve until SIGTERM or Ctrl-C. Settings come from the environment; README lists them."""
    environment = dict(os.environ)
    if host is not None:
        environment["CLAUDE_BIND"] = host
    if port is not None:
        environment["CLAUDE_PROXY_PORT"] = port
    try:
        settings = Settings.from_environment(environment)
        trio.run(partial(run_server, settings, environment, demo=demo))
    except* SettingError as group:
        for error in group.exceptions:
            click.echo(f"ocp-trio: {error}", err=True)
        sys.exit(BAD_SETTING)
