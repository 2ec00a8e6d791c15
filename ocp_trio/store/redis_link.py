"""Call a Redis within a time, and turn whatever it fails with into one error."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
from coredis import Redis
from coredis.commands import Script
from coredis.exceptions import RedisError
from coredis.retry import NoRetryPolicy

from ocp_trio.errors import SettingError
from ocp_trio.store.outages import Outages
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["RedisLink", "RedisScript", "open_link"]

# It logs a traceback for every failed connection; what an operator needs of that is said by `Outages`.
logging.getLogger("coredis").addHandler(logging.NullHandler())

T = TypeVar("T")
RedisScript = Script[bytes]
"""Lua that Redis runs as one step; it is loaded anew where a restarted Redis does not know it."""
CONNECTING, ANSWERING = 1 / 4, 1 / 2
"""Parts of the timeout: a call waits for a connection, for its greeting, and for the answer, seldom long for two."""


class RedisLink:
    """A client whose calls end in time; made by `open_link`."""

    def __init__(self, client: Redis[bytes], outages: Outages, *, shield: bool) -> None:
        self._client = client
        self._outages = outages
        self._shield = shield

    async def call(self, command: Callable[[Redis[bytes]], Awaitable[T]]) -> T:
        """Return what a command returns.

        Raises:
            StoreUnavailableError: Redis refuses it, or does not answer in time.
        """
        # A cancelled attempt to connect would cost the client's pool one of its places for ever.
        with trio.CancelScope(shield=self._shield):
            try:
                result = await command(self._client)
            except TimeoutError as error:
                # The next call has a connection of its own: this one may be dead for minutes before TCP says so.
                self._client.connection_pool.disconnect()
                raise self._outages.failed("timeout") from error
            except (RedisError, OSError) as error:
                raise self._outages.failed(type(error).__name__) from error
        self._outages.answered()
        return result

    async def run(self, script: RedisScript, keys: Sequence[str], *args: str | bytes | float) -> Any:  # noqa: ANN401 (what the script returns)
        """Return what a script returns."""
        return await self.call(lambda client: script(keys, args, client))


@asynccontextmanager
async def open_link(
    address: str, outages: Outages, *, timeout: float, waiting: float = 0.0, connections: int = 64
) -> AsyncIterator[RedisLink]:
    """Call a Redis for the length of a block; it is connected to when it is called.

    Args:
        address: ``redis://…``, ``rediss://…`` or ``unix://…``.
        outages: Told when calls fail and when they succeed again.
        timeout: Seconds that a call may take.
        waiting: Seconds beside that for calls that wait on Redis' side; they are cancelled at once.
        connections: How many are opened at most; calls that do not wait share one.

    Raises:
        SettingError: the address does not parse.
    """
    client = _make_client(address, timeout, waiting, connections)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            connected = await nursery.start(_hold, client)
            try:
                yield RedisLink(client, outages, shield=not waiting)
            finally:
                connected.cancel()


def _make_client(address: str, timeout: float, waiting: float, connections: int) -> Redis[bytes]:
    problem = "a host is missing"
    try:
        client = Redis.from_url(
            address,
            decode_components=True,
            connect_timeout=timeout * CONNECTING,
            stream_timeout=timeout * ANSWERING + waiting,
            max_connections=connections,
            # A charge that is sent twice would count twice.
            retry_policy=NoRetryPolicy(),
        )
        if client.connection_pool.location is not None:
            return client
    except (ValueError, TypeError, OSError) as error:
        problem = type(error).__name__
    # Outside the handler: its cause would quote the address, and with it a password.
    raise SettingError("OCP_STORE", f"{address.partition('://')[0]}://…", problem)


async def _hold(client: Redis[bytes], *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    """Keep a client's connections until the scope that is told is cancelled, and nothing else.

    Those that are cancelled have their last calls to make.
    """
    with trio.CancelScope(shield=True) as connected:
        async with client:
            task_status.started(connected)
            await trio.sleep_forever()
