"""``GET /dashboard``: the page and its parts, files of this package that a browser may run and nothing else."""

from importlib.resources import files
from pathlib import PurePath
from typing import Final

from quart import Response
from quart_trio.wrappers import TrioResponse

from ocp_trio.errors import NotFoundError

__all__ = ["PAGES", "page"]

KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

POLICY: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        # With no policy for making HTML out of text, no script can: what the server tells is put in as text.
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # A new version's page never meets an old version's script.
    "cache-control": "no-store",
}
"""Headers of all of them."""


def _read() -> dict[str, tuple[bytes, str]]:
    """Return content and type of each file under its path; the page itself stands under the folder's."""
    found = {}
    for file in files("ocp_trio.web").joinpath("static").iterdir():
        path = "/dashboard" if file.name == "index.html" else f"/dashboard/{file.name}"
        if kind := KINDS.get(PurePath(file.name).suffix):
            found[path] = file.read_bytes(), kind
    return found


PAGES: Final = _read()


def page(path: str) -> Response:
    """Return a file.

    Raises:
        NotFoundError: there is none at this path.
    """
    if path not in PAGES:
        raise NotFoundError(f"there is nothing at {path[:200]!r}")
    content, kind = PAGES[path]
    return TrioResponse(content, headers={"content-type": kind, **POLICY})
