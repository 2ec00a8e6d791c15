"""The ``ocp-trio`` command: serve, and run what is served."""

import sys
from io import TextIOWrapper

import click

from ocp_trio import __version__
from ocp_trio.cli.lazy import LazyGroup

__all__ = ["main"]


@click.group(
    cls=LazyGroup,
    commands_by_name={
        "serve": "Serve until SIGTERM or Ctrl-C.",
        "status": "Show whether the server is well, and what it is doing.",
        "usage": "Show what the plan has left, and who used it.",
        "models": "List the models that are served.",
        "logs": "Show the newest log entries, or follow them.",
        "settings": "Show the settings of the running server, or change some until it is started anew.",
        "keys": "Make, list and revoke the callers' keys, and set their quotas.",
        "connect": "Print what clients need to use the server at HOST, after a look whether it answers.",
        "doctor": "Check this machine, and say the next step where something is wrong.",
        "service": "Install a service that starts the server at login.",
    },
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done; 1 refused or failed; 2 wrong usage or setting; 3 no server there; 4 not authorised.",
)
@click.version_option(__version__, prog_name="ocp-trio")
def main() -> None:
    """Serve the claude CLI as an OpenAI-compatible endpoint, and run that server."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # What a terminal's encoding cannot show is told by its number, and is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
