"""Import a command when it is run, not before: help and ``serve`` start without what only others need."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["INTERRUPTED", "LazyGroup"]

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


class LazyGroup(click.Group):
    """A group whose commands live in modules of their names, beside this one.

    Args:
        commands_by_name: What the help says of each command, in the order of the help.
        attributes: Those of `click.Group`.
    """

    def __init__(self, *, commands_by_name: Mapping[str, str], **attributes: Any) -> None:  # noqa: ANN401 (click's own)
        super().__init__(**attributes)
        self.commands_by_name = commands_by_name

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of all commands."""
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (as above)
        """Import a command."""
        if cmd_name not in self.commands_by_name:
            return None
        command: click.Command = getattr(import_module(f"ocp_trio.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as above)
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.commands_by_name.items()))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's own)
        """Run a command; Ctrl-C ends it without a word."""
        result = None
        interrupted = False
        try:
            result = super().invoke(ctx)
        except* KeyboardInterrupt:
            interrupted = True
        if interrupted:
            ctx.exit(INTERRUPTED)
        return result
