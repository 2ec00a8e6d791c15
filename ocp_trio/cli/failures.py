"""Why a command fails: one sentence on stderr, and an exit status that a script can tell apart."""

import click

from ocp_trio.cli.text import clean

__all__ = ["Failure", "NotAuthorised", "NotUsable", "Unreachable"]


class Failure(click.ClickException):
    """The server refused, or something went wrong; the message says what to do next.

    Args:
        message: One sentence; may hold text of others.
        http_status: What the server answered; None where it was not asked.
    """

    exit_code = 1

    def __init__(self, message: str, *, http_status: int | None = None) -> None:
        super().__init__(message)
        self.http_status = http_status

    def show(self, file: object = None) -> None:  # noqa: ARG002 (click's signature)
        """Print the message."""
        click.echo(f"ocp-trio: {clean(self.message)}", err=True)


class NotUsable(Failure):
    """An argument or a setting makes no sense."""

    exit_code = 2


class Unreachable(Failure):
    """Nobody answers at the address, or somebody else than this server does."""

    exit_code = 3


class NotAuthorised(Failure):
    """The key is missing, wrong, or may not do this."""

    exit_code = 4
