"""Make Hypercorn 0.18's Trio worker survive its peers: a fault of one connection stays in that connection.

It can be deleted the day upstream needs none of it: the test of each fault fails without it, and says so once it
passes.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import hypercorn.trio
from hypercorn.trio import run, tcp_server

from ocp_trio.errors import OperatorError
from ocp_trio.hypercorn_hardening.connection import Connection
from ocp_trio.hypercorn_hardening.protocol import open_protocol
from ocp_trio.hypercorn_hardening.tasks import Tasks

__all__ = ["install"]

_serve_upstream = run.worker_serve


def install(*, write_timeout: float = 30.0, drain: Callable[[], Awaitable[None]] | None = None) -> None:
    """Replace what needs replacing in the installed Hypercorn, for servers started from now on.

    It serves `hypercorn.trio.serve` as well as the command with ``--worker-class trio``, whose worker imports the
    application first and looks up what is replaced here afterwards. A second call replaces the first one's arguments.

    Args:
        write_timeout: Seconds that a peer may take without reading anything of a write that waits for it, before its
            connection is dropped; `math.inf` never drops.
        drain: Runs once when a server that has a shutdown trigger is asked to stop, before it stops accepting. None
            stops at once.

    Raises:
        OperatorError: the installed Hypercorn is not 0.18.
    """
    installed = version("hypercorn")
    if not installed.startswith("0.18."):
        raise OperatorError(f"hypercorn {installed} is installed; its hardening fits 0.18 only")
    worker_serve = partial(_worker_serve, drain)
    for module, name, replacement in (
        (run, "TCPServer", partial(Connection, write_timeout)),
        (tcp_server, "TaskGroup", Tasks),
        (tcp_server, "ProtocolWrapper", open_protocol),
        (run, "worker_serve", worker_serve),
        (hypercorn.trio, "worker_serve", worker_serve),
    ):
        setattr(module, name, replacement)


async def _worker_serve(
    drain: Callable[[], Awaitable[None]] | None,
    *args: Any,  # noqa: ANN401 - passed through as they are
    shutdown_trigger: Callable[..., Awaitable[None]] | None = None,
    **kwargs: Any,  # noqa: ANN401 - passed through as they are
) -> None:
    """Serve as upstream does, but drain between the trigger and the stop."""
    if drain is not None and shutdown_trigger is not None:
        shutdown_trigger = partial(_wait_and_drain, shutdown_trigger, drain)
    await _serve_upstream(*args, shutdown_trigger=shutdown_trigger, **kwargs)


async def _wait_and_drain(trigger: Callable[[], Awaitable[None]], drain: Callable[[], Awaitable[None]]) -> None:
    await trigger()
    await drain()
