"""The web application over a scripted backend, for tests on the mock clock."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from ocp_trio.completion import Backend
from ocp_trio.logs import LogRing, open_logs
from ocp_trio.settings import Settings
from ocp_trio.store import Store
from ocp_trio.testing import AsgiExchange, open_asgi_exchange
from ocp_trio.web import Lifecycle, create_app

CHAT = "/v1/chat/completions"


class WebApp:
    """An application with all that a test may look at."""

    def __init__(self, backends: tuple[Backend, ...], settings: Settings, store: Store | None) -> None:
        self.ring = LogRing()
        self.lifecycle = Lifecycle()
        self.asgi = create_app(backends, settings, ring=self.ring, lifecycle=self.lifecycle, store=store)

    @asynccontextmanager
    async def chat(self, headers: dict[str, str] | None = None, **body: Any) -> AsyncIterator[AsgiExchange]:
        """Ask for a completion."""
        body = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], **body}
        async with open_asgi_exchange(self.asgi, CHAT, body=json.dumps(body).encode(), headers=headers) as exchange:
            yield exchange

    async def ask(self, headers: dict[str, str] | None = None, **body: Any) -> tuple[int, bytes]:
        """Ask for a completion and wait for all of it."""
        async with self.chat(headers, **body) as exchange:
            await exchange.head()
            return exchange.status, await exchange.body()

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
        """Get something that is JSON."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        async with open_asgi_exchange(self.asgi, path, method=method, headers=fields) as exchange:
            await exchange.head()
            body = await exchange.body()
            # A server sends no body to HEAD, whatever the application gives it.
            return exchange.status, json.loads(body) if method != "HEAD" else None

    async def health(self) -> dict[str, Any]:
        """Return the counters of /health."""
        stats: dict[str, Any] = (await self.get("/health"))[1]["stats"]
        return stats

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the log entries of one event, without their time."""
        entries = self.ring.newest(1000, event=event)
        return [{name: value for name, value in entry.items() if name != "ts"} for entry in entries]


@asynccontextmanager
async def open_web_app(*backends: Backend, **settings: Any) -> AsyncIterator[WebApp]:
    """Build the application for the length of a block, with its log in a ring; ``store`` is its store."""
    store = settings.pop("store", None)
    app = WebApp(backends, Settings(**settings), store)
    with open_logs(app.ring):
        yield app


def frames(body: bytes) -> list[str]:
    """Return what each frame of a stream says in short: its text, ``role``, ``finish …``, ``error …``, or itself."""
    return [_frame(block) for block in body.decode().split("\n\n") if block]


def _frame(block: str) -> str:
    if not block.startswith("data: {"):
        return block.removeprefix("data: ")
    chunk = json.loads(block.removeprefix("data: "))
    if "error" in chunk:
        return f"error {chunk['error']['type']} {chunk['error']['code']}"
    if not chunk["choices"]:
        return "usage"
    choice = chunk["choices"][0]
    if choice["finish_reason"]:
        return f"finish {choice['finish_reason']}"
    if "role" in choice["delta"]:
        return "role"
    return str(choice["delta"].get("content", "empty"))


async def timeline(exchange: AsgiExchange) -> list[tuple[float, str]]:
    """Return each frame with the second at which it arrived, from now on."""
    began = trio.current_time()
    await exchange.head()
    return [
        (round(trio.current_time() - began, 6), frame) async for piece in exchange.pieces() for frame in frames(piece)
    ]
