"""Know whether a store answers before anybody needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from ocp_trio.errors import StoreUnavailableError
from ocp_trio.store.interface import Store

__all__ = ["INTERVAL", "open_watch"]

INTERVAL: Final = 5.0
"""Seconds between two looks."""


@asynccontextmanager
async def open_watch(store: Store) -> AsyncIterator[None]:
    """Look whether a store answers, at once and every `INTERVAL`, for the length of a block: see `Store.state`."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, store)
        yield
        nursery.cancel_scope.cancel()


async def _watch(store: Store) -> None:
    while True:
        # The store's own state, and the log, tell of a failure.
        with suppress(StoreUnavailableError):
            await store.ping()
        await trio.sleep(INTERVAL)
