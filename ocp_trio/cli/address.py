"""Read the address of a server as people write it."""

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from ocp_trio.cli.failures import NotUsable
from ocp_trio.settings import Settings, is_loopback

__all__ = ["DEFAULT_PORT", "Address", "own_address", "parse_address"]

DEFAULT_PORT = 3456
"""Where a server listens unless it is told otherwise."""

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")


class Address(NamedTuple):
    """Where a server is."""

    url: str
    """What its paths are appended to: without ``/v1`` and without a slash at its end."""
    host: str
    port: int

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine's loopback."""
        return is_loopback(self.host)


def parse_address(text: str) -> Address:
    """Read ``host``, ``host:port``, an IPv6 address with or without brackets, or a URL.

    Without a scheme it is http, on port 3456 unless one is named; with one, the port is the scheme's own.

    Raises:
        NotUsable: it is none of these.
    """
    written = text.strip()
    parts = _split(written)
    if parts.scheme not in {"http", "https"}:
        raise NotUsable(f"{text!r} is no address of a server: it has to begin with http:// or https://, or with a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise NotUsable(
            f"{_harmless(parts)!r} is no address of a server: only a host, a port and a path may stand in it"
        )
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise NotUsable(f"{text!r} is no address of a server: a port is a number from 1 to 65535") from error
    _check_host(host, text)
    if port == 0:
        raise NotUsable(f"{text!r} is no address of a server: a port is a number from 1 to 65535")
    if port is None and "://" not in written:
        port = DEFAULT_PORT
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    url = f"{parts.scheme}://{shown}{'' if port is None else f':{port}'}{path}"
    return Address(url, host, port or (443 if parts.scheme == "https" else 80))


def _split(text: str) -> SplitResult:
    if _is_ipv6(text):
        text = f"[{text}]"
    if not text.isprintable() or " " in text:
        raise NotUsable(f"{text!r} is no address of a server: there are blanks or control characters in it")
    try:
        return urlsplit(text if "://" in text else f"http://{text}")
    except ValueError as error:
        raise NotUsable(f"{text!r} is no address of a server: an IPv6 address stands in [brackets]") from error


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _harmless(parts: SplitResult) -> str:
    """Return an address without what may be a password."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _check_host(host: str, text: str) -> None:
    if _is_ipv6(host):
        return
    try:
        ascii_name = host.encode("idna").decode()
    except UnicodeError:
        ascii_name = ""
    labels = ascii_name.rstrip(".").split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise NotUsable(f"{text!r} is no address of a server: {host!r} is no host name")
    if labels[-1].isdigit() and not _is_ipv4(ascii_name):
        raise NotUsable(f"{text!r} is no address of a server: {host!r} is no IPv4 address")


def _is_ipv4(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 4
    except ValueError:
        return False


def own_address(settings: Settings) -> Address:
    """Return where a server with these settings is reached from its own machine."""
    host = settings.bind.strip("[]")
    wildcards = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (compared with, not bound to)
    host = wildcards.get(host, host)
    return parse_address(f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}")
