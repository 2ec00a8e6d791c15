"""Applications that can be told of a disconnect without waiting for them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio
from hypercorn.config import Config
from hypercorn.trio.task_group import TaskGroup, _handle
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, Scope

__all__ = ["Tasks"]


class Tasks(TaskGroup):
    """The tasks of one connection.

    Upstream puts ``http.disconnect`` into the application's queue like everything else, so that an application which
    answers without having read its request holds the connection for ever.
    """

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        """Start the application, and return what passes it an event."""
        inbox, received = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)

        async def receive() -> ASGIReceiveEvent:
            try:
                return await received.receive()
            except trio.EndOfChannel:
                return {"type": "http.disconnect"}

        async def put(event: ASGIReceiveEvent) -> None:
            if event["type"] == "http.disconnect":
                inbox.close()
                return
            with suppress(trio.ClosedResourceError):
                await inbox.send(event)

        self.spawn(_handle, app, config, scope, receive, send, trio.to_thread.run_sync, trio.from_thread.run)
        return put
