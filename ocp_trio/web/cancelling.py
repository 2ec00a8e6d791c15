"""``DELETE /v1/requests/{id}``: end a running completion by its ``x-request-id``."""

import logging

import trio

from ocp_trio.errors import NotFoundError, RequestCancelledError
from ocp_trio.web.answers import Cancelled
from ocp_trio.web.callers import Caller, is_known
from ocp_trio.web.site import Site

__all__ = ["cancel_request", "may_see"]

MARGIN = 2.0
"""Seconds beyond the grace period of a child within which it is gone."""

logger = logging.getLogger("ocp_trio.web")


def may_see(site: Site, caller: Caller, owner: Caller) -> bool:
    """Whether a caller may see and end what ``owner`` runs: it is the same key's, or the caller is the administrator.

    Where nobody is asked for a key all callers of this machine are one, and those from elsewhere nobody.
    """
    return caller.is_admin or (caller == owner and is_known(caller, site.settings))


async def cancel_request(site: Site, caller: Caller, request_id: str) -> tuple[Cancelled, int]:
    """End a completion, and answer once its child is gone and its slot free: with 200, or 202 if that takes too long.

    Its client gets one error that says so. One that comes to its end in the same moment ends as if nothing had been.
    What it shared with equal requests of its caller goes on for those, and its child ends after the last of them.

    Cancellation: the answer is given up; the completion is ended all the same.

    Raises:
        NotFoundError: none runs under this id, or it is somebody else's.
    """
    running = site.lifecycle.running.get(request_id)
    if running is None or not may_see(site, caller, running.ledger.caller):
        raise NotFoundError(f"no request of yours runs under the id {request_id[:100]!r}")
    logger.info("request_cancelled", extra={"id": request_id, "by": "admin" if caller.is_admin else "owner"})
    running.end(RequestCancelledError("the request was cancelled by its id"))
    with trio.move_on_after(site.settings.kill_grace + MARGIN):
        await running.left.wait()
    gone = running.left.is_set()
    return {"id": request_id, "cancelled": True, "gone": gone}, 200 if gone else 202
