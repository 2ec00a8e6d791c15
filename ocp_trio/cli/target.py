"""Which server a command talks to, and with which key."""

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click

from ocp_trio.cli.address import Address, own_address, parse_address
from ocp_trio.cli.failures import NotUsable
from ocp_trio.errors import SettingError
from ocp_trio.settings import Settings

__all__ = ["Target", "json_option", "key_from", "key_option", "takes_target"]

KEY_PREFIX = "ocp_"
"""What the keys of this server's auth mode ``multi`` begin with."""
MAX_KEY_FILE = 10_000
"""Bytes that are read of a file with a key."""


class Target(NamedTuple):
    """A server, and the key to show it; None shows none."""

    address: Address
    key: str | None


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
key_option = click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="File with the key. Otherwise: OCP_ADMIN_KEY, PROXY_API_KEY or OPENAI_API_KEY.",
)
_url_option = click.option(
    "--url", envvar="OCP_URL", help="Address of the server (OCP_URL); otherwise CLAUDE_BIND and CLAUDE_PROXY_PORT."
)


def takes_target(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command ``--url``, ``--key-file`` and ``--json``, and the target that they name."""

    @wraps(command)
    def with_target(url: str | None, key_file: Path | None, **arguments: Any) -> None:  # noqa: ANN401 (click's own)
        address = parse_address(url) if url else own_address(_settings())
        command(Target(address, key_from(os.environ, address, key_file)), **arguments)

    return _url_option(key_option(json_option(with_target)))


def _settings() -> Settings:
    """Read only what says where the server is: what else is wrong with the settings is not this command's business."""
    names = ("CLAUDE_BIND", "CLAUDE_PROXY_PORT")
    try:
        settings = Settings.from_environment(
            {"OCP_ALLOW_OPEN": "1"} | {name: os.environ.get(name, "") for name in names}
        )
    except SettingError as error:
        raise NotUsable(str(error)) from error
    if settings.port == 0:
        raise NotUsable("CLAUDE_PROXY_PORT=0 is any port: give the server's address with --url")
    return settings


def key_from(
    environment: Mapping[str, str], address: Address, key_file: Path | None, *, may_be_admin: bool = True
) -> str | None:
    """Return the key to show a server; None where there is none.

    A key on the command line would stand in `ps`. ``OPENAI_API_KEY`` counts only where it is meant for this server:
    with the prefix of its keys, or beside an ``OPENAI_BASE_URL`` that names it. A key for OpenAI goes nowhere else.

    Args:
        environment: Usually `os.environ`.
        address: The server.
        key_file: A file with the key, which goes first.
        may_be_admin: Whether ``OCP_ADMIN_KEY`` is looked at.

    Raises:
        NotUsable: the file cannot be read, or holds no key; or a key is none that a header can hold.
    """
    if key_file is not None:
        return _sendable(_read(key_file), f"the key in {str(key_file)!r}")
    names = ["OCP_ADMIN_KEY"] * may_be_admin + ["PROXY_API_KEY"] + ["OPENAI_API_KEY"] * _is_meant(environment, address)
    for name in names:
        if key := environment.get(name, "").strip():
            return _sendable(key, f"the key in {name}")
    return None


def _is_meant(environment: Mapping[str, str], address: Address) -> bool:
    if environment.get("OPENAI_API_KEY", "").startswith(KEY_PREFIX):
        return True
    base = environment.get("OPENAI_BASE_URL", "")
    try:
        return bool(base) and parse_address(base).url == address.url
    except NotUsable:
        return False


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_KEY_FILE).decode()
    except OSError as error:
        raise NotUsable(f"the key file {str(path)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise NotUsable(f"the key file {str(path)!r} holds no text") from error
    return text.strip()


def _sendable(key: str, what: str) -> str:
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise NotUsable(f"{what} is no key: it is empty, or there are blanks or other than ASCII characters in it")
    return key
