"""Decide who may call: keys, and what a web page that some browser shows may do."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from ocp_trio.errors import InvalidApiKeyError, PermissionDeniedError
from ocp_trio.settings import is_loopback

__all__ = ["EXPOSED", "check_host", "check_origin", "preflight_headers", "read_key"]

PREFLIGHT: Mapping[str, str] = {
    "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "authorization, content-type, x-api-key",
    "Access-Control-Max-Age": "86400",
}
"""What a browser is told when it asks before a request."""
EXPOSED = "x-request-id, retry-after, x-should-retry, x-ocp-ignored"
"""Headers of a response that a page may read."""
MAX_ASKED = 4096
"""Characters of the names of headers that a page may want to send; the official clients' are 500."""

_NAMES = re.compile(r"[\w!#$%&'*+.^`|~-]+( *, *[\w!#$%&'*+.^`|~-]+)*", re.ASCII)
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.~-]+))(?::[0-9]{0,5})?", re.ASCII)


def _is_known(host: str | None, allowed: Iterable[str]) -> bool:
    return host is not None and (is_loopback(host) or host.lower() in {name.lower() for name in allowed})


def _host_name(host: str) -> str | None:
    parts = _HOST.fullmatch(host)
    return parts and (parts[1] or parts[2])


def check_host(host: str, allowed: Iterable[str]) -> None:
    """Refuse a foreign ``Host`` on a loopback server: some page's own name, pointed at this machine.

    Args:
        host: The header, with or without a port; empty where an old client sends none.
        allowed: Names that are not foreign beside the loopback's.

    Raises:
        PermissionDeniedError: the name is foreign.
    """
    if host and not _is_known(_host_name(host), allowed):
        raise PermissionDeniedError("this host name is not served here: OCP_ALLOWED_HOSTS names those that are")


def check_origin(origin: str | None, allowed: Iterable[str]) -> None:
    """Refuse a page of another site.

    Raises:
        PermissionDeniedError: the request comes from one.
    """
    if origin is not None and not _is_known(_origin_host(origin), allowed):
        raise PermissionDeniedError("a page of this origin may not call this server without a key")


def _origin_host(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None


def preflight_headers(headers: Headers) -> dict[str, str]:
    """Return the answer to a browser that asks before a request.

    Each version of each client sends other headers (``x-stainless-…``, ``anthropic-…``, ``user-agent``), and none of
    them opens anything: all that a page asks for are allowed.
    """
    asked = headers.get("access-control-request-headers", "").strip()
    if len(asked) > MAX_ASKED or not _NAMES.fullmatch(asked):
        return dict(PREFLIGHT)
    return {**PREFLIGHT, "Access-Control-Allow-Headers": asked}


def read_key(headers: Headers) -> str:
    """Return the key of ``Authorization: Bearer KEY`` (in any case, with any spaces) or ``x-api-key: KEY``.

    Raises:
        InvalidApiKeyError: there is none, or there are two that differ.
    """
    sent = {value.strip() for value in headers.getlist("x-api-key")}
    for value in headers.getlist("authorization"):
        scheme, _, rest = value.strip().partition(" ")
        if scheme.lower() != "bearer":
            raise InvalidApiKeyError("the Authorization header has to read `Bearer KEY`")
        sent.add(rest.strip())
    sent.discard("")
    if not sent:
        raise InvalidApiKeyError("an API key is required: send `Authorization: Bearer KEY`")
    if len(sent) > 1:
        raise InvalidApiKeyError("two different API keys were sent")
    return sent.pop()
