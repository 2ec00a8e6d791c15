"""Call a Redis within a time, and turn whatever it fails with into one error."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

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
CONNECTIONS: Final = 16
"""Commands that are on their way at once; they share connections, one of which suffices as a rule."""
RedisScript = Script[bytes]
"""Lua that Redis runs as one step; it is loaded anew where a restarted Redis does not know it."""


@dataclass(eq=False, slots=True)
class _Reply:
    """What becomes of one command."""

    done: trio.Event = field(default_factory=trio.Event)
    value: Any = None
    error: Exception | None = None
    given_up: bool = False


class RedisLink:
    """A client whose calls end in time; made by `open_link`."""

    def __init__(
        self, client: Redis[bytes], nursery: trio.Nursery, outages: Outages, *, timeout: float, shield: bool
    ) -> None:
        self._client = client
        self._nursery = nursery
        self._outages = outages
        self._timeout = timeout
        self._shield = shield
        # The client's own queue for connections cannot be left without losing one of them.
        self._limiter = trio.CapacityLimiter(client.connection_pool.max_connections)

    async def call(self, command: Callable[[Redis[bytes]], Awaitable[T]]) -> T:
        """Return what a command returns.

        Raises:
            StoreUnavailableError: Redis refuses it, or does not answer in time.
        """
        reply = _Reply()
        self._nursery.start_soon(self._carry_out, command, reply)
        with trio.move_on_after(self._timeout, shield=self._shield):
            await reply.done.wait()
        if not reply.done.is_set():
            reply.given_up = True
            # The next call has a connection of its own: this one may be dead for minutes before TCP says so.
            self._client.connection_pool.disconnect()
            raise self._outages.failed("timeout")
        if reply.error is not None:
            raise self._outages.failed(type(reply.error).__name__) from reply.error
        self._outages.answered()
        value: T = reply.value
        return value

    async def _carry_out(self, command: Callable[[Redis[bytes]], Awaitable[Any]], reply: _Reply) -> None:
        """Run a command to its end, for which its caller may have ceased to wait.

        Cancelled while it connects, it would cost the client's pool one of its places for ever.
        """
        async with self._limiter:
            if reply.given_up:
                return
            try:
                reply.value = await command(self._client)
            except (RedisError, OSError) as error:
                reply.error = error
        reply.done.set()

    async def run(self, script: RedisScript, keys: Sequence[str], *args: str | bytes | float) -> Any:  # noqa: ANN401 (what the script returns)
        """Return what a script returns."""
        return await self.call(lambda client: script(keys, args, client))


@asynccontextmanager
async def open_link(
    address: str, outages: Outages, *, timeout: float, waiting: float = 0.0, connections: int = CONNECTIONS
) -> AsyncIterator[RedisLink]:
    """Call a Redis for the length of a block; it is connected to when it is called.

    Args:
        address: ``redis://…``, ``rediss://…`` or ``unix://…``.
        outages: Told when calls fail and when they succeed again.
        timeout: Seconds that a call may take.
        waiting: Seconds beside that for calls that wait on Redis' side; they are cancelled at once.
        connections: How many are opened at most.

    Raises:
        SettingError: the address does not parse.
    """
    client = _make_client(address, timeout, waiting, connections)
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            commands = await nursery.start(_hold, client)
            try:
                yield RedisLink(client, commands, outages, timeout=timeout + waiting, shield=not waiting)
            finally:
                commands.cancel_scope.cancel()


def _make_client(address: str, timeout: float, waiting: float, connections: int) -> Redis[bytes]:
    problem = "a host is missing"
    try:
        client = Redis.from_url(
            address,
            decode_components=True,
            # A call that was given up makes room for another within the timeout of that.
            connect_timeout=timeout / 2,
            stream_timeout=timeout / 2 + waiting,
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


async def _hold(client: Redis[bytes], *, task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Keep a client's connections and commands, shielded, until the nursery of the commands is cancelled.

    Those that are cancelled have their last calls to make, within the timeouts of the client.
    """
    with trio.CancelScope(shield=True):
        async with client, trio.open_nursery() as commands:
            task_status.started(commands)
            await trio.sleep_forever()
