"""Settings in a file that systemd's ``EnvironmentFile=`` and a POSIX shell read alike."""

import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from ocp_trio.cli.failures import Failure, NotUsable
from ocp_trio.settings import Settings

__all__ = ["chosen", "parse", "render", "shown"]

PASSED_ON: Final = (
    # A service starts with a bare PATH: neither a `claude` of npm's nor its `node` would be found.
    "PATH",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
"""What the server and its children need beside the settings."""

_SETTINGS: Final = {each.metadata["name"]: each for each in fields(Settings)}
_PATHS: Final = frozenset({"CLAUDE_BIN", "CLAUDE_MCP_CONFIG", "OCP_STORE"})


def chosen(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment a service needs: settings, what ``OCP_CHILD_ENV`` names, and `PASSED_ON`.

    Paths that depend on the current folder become absolute: a service runs in another one.

    Raises:
        NotUsable: a value cannot stand in such a file.
    """
    named = (name.strip() for name in environment.get("OCP_CHILD_ENV", "").split(","))
    names = dict.fromkeys([*_SETTINGS, *PASSED_ON, *named])
    found = {name: _absolute(name, environment[name]) for name in names if environment.get(name)}
    for name, value in found.items():
        if not value.replace("\n", "").replace("\t", "").isprintable():
            raise NotUsable(f"{name} holds a control character, or none of Unicode's: a service cannot be given it")
    return found


def _absolute(name: str, value: str) -> str:
    is_path = name in _PATHS and "/" in value and "://" not in value
    return str(Path(value).expanduser().absolute()) if is_path else value


def render(values: Mapping[str, str]) -> str:
    """Return the lines of a file."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def parse(text: str, path: Path) -> dict[str, str]:
    """Read a file that `render` wrote, and somebody may have edited.

    Raises:
        Failure: it is none.
    """
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise Failure(f"{path} cannot be read ({error}): correct it, or move it away") from error
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise Failure(f"{path} cannot be read ({word[:20]!r} is no NAME=VALUE): correct it, or move it away")
        values[name] = value
    return values


def shown(values: Mapping[str, str]) -> dict[str, str]:
    """Return values for everybody's eyes: of what may be secret, the name only."""
    return {name: value if _is_open(name) else "…" for name, value in values.items()}


def _is_open(name: str) -> bool:
    return name == "PATH" or (name in _SETTINGS and _SETTINGS[name].repr)
