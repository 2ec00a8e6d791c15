"""``ocp-trio serve``: arguments become settings, settings a running server."""

import os
from functools import partial

import click
import trio

from ocp_trio.cli.failures import Failure, NotUsable
from ocp_trio.errors import OcpError, SettingError
from ocp_trio.server import run_server
from ocp_trio.settings import Settings

__all__ = ["serve"]


@click.command()
@click.option("--host", help="Address to listen on (CLAUDE_BIND).")
@click.option("--port", help="Port to listen on; 0 takes a free one (CLAUDE_PROXY_PORT).")
@click.option("--demo", is_flag=True, help="Also serve the model `demo`, which needs no CLI.")
def serve(host: str | None, port: str | None, *, demo: bool) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Settings come from the environment; README lists them.
    """
    environment = dict(os.environ)
    if host is not None:
        environment["CLAUDE_BIND"] = host
    if port is not None:
        environment["CLAUDE_PROXY_PORT"] = port
    try:
        settings = Settings.from_environment(environment)
        trio.run(partial(run_server, settings, environment, demo=demo))
    except SettingError as error:
        raise NotUsable(str(error)) from error
    except OcpError as error:
        raise Failure(str(error)) from error
