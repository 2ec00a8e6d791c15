"""A writer whose client reads at its own pace, and the exchange that it is part of."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from math import inf
from typing import Any

import trio
from upstream import Timeline, Upstream

from ocp_trio.errors import OcpError
from ocp_trio.streaming import run_exchange

__all__ = ["Writer", "exchange"]

BEAT = "beat"
UNSEEN = "U"
"""An item of which a client sees nothing."""


class Writer:
    """Writes letters.

    Args:
        busy: Seconds that writing a letter takes, where it takes any.

    Attributes:
        seen: When each item had been written.
    """

    def __init__(self, busy: Mapping[str, float] | None = None) -> None:
        self.seen: Timeline = []
        self._busy = busy or {}

    async def write(self, item: str) -> bool:
        """Write one item; return whether anything but a heartbeat was written."""
        if item in self._busy:
            await trio.sleep(self._busy[item])
        if item == UNSEEN:
            return False
        self.seen.append((trio.current_time(), item))
        return item != BEAT


async def exchange(
    source: str | AbstractAsyncContextManager[Any],
    writer: Writer | None = None,
    *,
    interval: float = inf,
    cut: Callable[[], Awaitable[OcpError]] = trio.sleep_forever,
) -> Timeline:
    """Run an exchange to its end and return what was written."""
    writer = writer or Writer()
    await run_exchange(
        Upstream(source).open() if isinstance(source, str) else source,
        writer.write,
        is_last=lambda item: item in ("T", "E") or item.endswith("Error"),
        failed=lambda error: type(error).__name__,
        beat=BEAT,
        heartbeat_interval=interval,
        cut=cut,
    )
    return writer.seen
