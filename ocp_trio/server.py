"""The composition root: settings become backends, an application, a listening socket and an orderly end."""

import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from hypercorn.utils import LifespanFailureError

from ocp_trio import hypercorn_hardening
from ocp_trio.claude import HOW_TO_INSTALL, AbsentClaude, ClaudeBackend, find_claude, open_claude, watch_program
from ocp_trio.claude.command import child_environment
from ocp_trio.completion import Backend
from ocp_trio.demo import DemoBackend
from ocp_trio.errors import OcpError
from ocp_trio.garbage import calm_collector
from ocp_trio.listener import BACKLOG, listen
from ocp_trio.logs import LogRing, open_logs
from ocp_trio.opencode_go import BASE_URL, OpenCodeGoBackend, open_opencode_go
from ocp_trio.settings import Settings
from ocp_trio.store import open_store, open_watch
from ocp_trio.web import Lifecycle, create_app

__all__ = ["Application", "run_server"]

KEEP_ALIVE = 75.0
"""Seconds that an idle connection stays open: longer than the pools of the usual clients keep theirs."""

logger = logging.getLogger("ocp_trio.server")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Application:
    """The ASGI application; what it needs is opened and closed by its lifespan.

    Args:
        settings: All of them.
        environment: What the child's is chosen from, usually `os.environ`.
        demo: Serve the model ``demo`` even where the CLI is found.

    Attributes:
        startup_error: Why the lifespan could not begin; None where it could.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str], *, demo: bool = False) -> None:
        self._settings = settings
        self._environment = environment
        self._demo = demo
        self.startup_error: OcpError | None = None
        self._lifecycle = Lifecycle()
        self._app: Callable[[dict[str, Any], Receive, Send], Awaitable[None]] | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            assert self._app is not None, "the server has to run the lifespan protocol"
            await self._app(scope, receive, send)

    async def drain(self) -> None:
        """Bring all requests to an end: after the shutdown grace period each gets an error that says why."""
        settings = self._settings
        logger.info("draining", extra={"active": self._lifecycle.active.value})
        await self._lifecycle.drain(settings.shutdown_grace, settings.kill_grace + 2)

    def end_now(self) -> None:
        """Cut the grace period of a drain short."""
        self._lifecycle.stop()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self._open():
                calm_collector()
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except OcpError as error:
            self.startup_error = error
            await send({"type": "lifespan.startup.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        ring = LogRing()
        async with AsyncExitStack() as stack:
            stack.enter_context(open_logs(ring))
            backends = await stack.enter_async_context(self._open_backends())
            store = None
            if self._settings.keeps_accounts:
                # Inside the backends' block: what its flights have running ends before the backends do.
                store = await stack.enter_async_context(open_store(self._settings.store))
                await stack.enter_async_context(open_watch(store))
            app = create_app(
                backends,
                self._settings,
                ring=ring,
                lifecycle=self._lifecycle,
                store=store,
                tune=partial(_tune, backends),
            )
            self._app = app  # type: ignore[assignment]  # Quart types ASGI messages one by one
            yield

    @asynccontextmanager
    async def _open_backends(self) -> AsyncIterator[tuple[Backend, ...]]:
        """Open what serves models; where two know a name, the first serves it."""
        async with AsyncExitStack() as stack:
            claude = await stack.enter_async_context(self._open_claude())
            backends: list[Backend] = [claude]
            if key := self._settings.opencode_api_key or self._settings.opencode_zen_api_key:
                backends.append(await stack.enter_async_context(self._open_opencode_go(key)))
            if self._demo or isinstance(claude, AbsentClaude):
                backends.append(DemoBackend())
            yield tuple(backends)

    def _open_opencode_go(self, key: str) -> AbstractAsyncContextManager[Backend]:
        settings = self._settings
        return open_opencode_go(
            key,
            base_url=settings.opencode_base_url or BASE_URL,
            first_event_timeout=settings.opencode_first_event_timeout,
            idle_timeout=settings.opencode_idle_timeout,
            keepalive_cap=settings.opencode_keepalive_cap,
        )

    @asynccontextmanager
    async def _open_claude(self) -> AsyncIterator[Backend]:
        settings, environment = self._settings, self._environment
        if "HOME" not in environment:
            logger.warning("no_home", extra={"hint": "HOME is not set: the CLI looks for its login in the passwd home"})
        binary = find_claude({**environment, "CLAUDE_BIN": settings.claude_bin})
        if binary is None:
            logger.warning("claude_missing", extra={"hint": HOW_TO_INSTALL, "served": ["demo"]})
            yield AbsentClaude()
            return
        async with (
            open_claude(
                binary,
                environment=environment,
                pass_environment=settings.child_env,
                max_concurrent=settings.max_concurrent,
                max_queue=settings.max_queue,
                retry_after=settings.queue_retry_after,
                grace_period=settings.kill_grace,
                stall_timeout=settings.stall_timeout,
                allowed_tools=settings.allowed_tools,
                mcp_config=settings.mcp_config or None,
                setting_sources=settings.setting_sources,
                warm_pool=settings.warm_pool,
                warm_conversations=settings.warm_conversations,
            ) as claude,
            trio.open_nursery() as nursery,
        ):
            child_env = child_environment(environment, also=settings.child_env)
            nursery.start_soon(watch_program, binary, child_env, claude.program)
            yield claude
            nursery.cancel_scope.cancel()


def _tune(backends: tuple[Backend, ...], settings: Settings) -> None:
    """Let backends that are open follow settings that have been changed."""
    for backend in backends:
        match backend:
            case ClaudeBackend():
                backend.tune(
                    max_concurrent=settings.max_concurrent,
                    max_queue=settings.max_queue,
                    retry_after=settings.queue_retry_after,
                    stall_timeout=settings.stall_timeout,
                    warm_conversations=settings.warm_conversations,
                )
            case OpenCodeGoBackend():
                backend.tune(
                    first_event_timeout=settings.opencode_first_event_timeout,
                    idle_timeout=settings.opencode_idle_timeout,
                    keepalive_cap=settings.opencode_keepalive_cap,
                )


async def run_server(settings: Settings, environment: Mapping[str, str], *, demo: bool) -> None:
    """Serve until SIGTERM or SIGINT; a second signal cuts the grace period short.

    Raises:
        SettingError: the port is taken, or the address is not this machine's.
        OcpError: something that the application needs cannot be opened.
    """
    application = Application(settings, environment, demo=demo)
    stop = trio.Event()
    config = Config()
    config.accesslog, config.errorlog, config.loglevel = None, "-", "WARNING"
    config.keep_alive_timeout, config.backlog, config.include_server_header = KEEP_ALIVE, BACKLOG, False
    listener = listen(settings)
    address, port = listener.getsockname()[:2]
    # Hypercorn takes the descriptor over, and closes it.
    config.bind = [f"fd://{listener.detach()}"]
    hypercorn_hardening.install(write_timeout=settings.write_timeout, drain=application.drain)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(_watch_signals, stop, application.end_now)
            host = f"[{address}]" if ":" in address else address
            print(f"ocp-trio listens on http://{host}:{port}", flush=True)  # noqa: T201 (the one line for a person)
            await serve(application, config, shutdown_trigger=stop.wait)  # type: ignore[arg-type]  # as above
            nursery.cancel_scope.cancel()
    except* LifespanFailureError:
        # Hypercorn's words for what the application knows better.
        assert application.startup_error is not None
    if application.startup_error is not None:
        raise application.startup_error


async def _watch_signals(
    stop: trio.Event, end_now: Callable[[], None], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    numbers = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # That is what nohup is for.
        numbers.remove(signal.SIGHUP)
    with trio.open_signal_receiver(*numbers) as signals:
        task_status.started()
        async for _ in signals:
            if stop.is_set():
                end_now()
            stop.set()
