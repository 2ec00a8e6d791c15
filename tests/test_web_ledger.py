"""A request's row tells when what happened to it, to the millisecond."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from memory_store import open_memory_store, rows
from trio.testing import MockClock
from web_app import WebApp, open_web_app

from ocp_trio.completion import Batch, Completed, CompletionRequest, Started, TextDelta
from ocp_trio.store import UsageRow
from ocp_trio.testing import ScriptedBackend


class Queue(ScriptedBackend):
    """Lets everybody wait for so many seconds."""

    wait = 0.0

    @asynccontextmanager
    async def stream(self, request: CompletionRequest) -> AsyncIterator[AsyncIterator[Batch]]:
        await trio.sleep(self.wait)
        async with super().stream(request) as batches:
            yield batches


@asynccontextmanager
async def open_counted(backend: ScriptedBackend, **settings: float) -> AsyncIterator[tuple[WebApp, list[UsageRow]]]:
    async with open_memory_store() as store, open_web_app(backend, store=store, **settings) as app:
        yield app, rows(store)


async def test_wait_first_text_and_end_are_counted_from_the_arrival(autojump_clock: MockClock) -> None:
    backend = Queue([(Started(1.5),), 0.5, (TextDelta("a"),), 4.0, (Completed("stop"),)])
    backend.wait = 1.5

    async with open_counted(backend) as (app, kept):
        await app.ask(stream=True)

    assert [(row.outcome, row.queue_wait_ms, row.first_delta_ms, row.total_ms) for row in kept] == [
        ("ok", 1500, 2000, 6000)
    ]


async def test_who_leaves_the_queue_has_waited_all_the_time(autojump_clock: MockClock) -> None:
    backend = Queue([])
    backend.wait = 86_400

    async with open_counted(backend) as (app, kept), app.chat(stream=True) as exchange:
        await trio.sleep(3)
        exchange.disconnect()

    assert [(row.outcome, row.queue_wait_ms, row.total_ms) for row in kept] == [("cancelled", 3000, 3000)]


async def test_so_has_who_is_timed_out_in_it(autojump_clock: MockClock) -> None:
    backend = Queue([])
    backend.wait = 86_400

    async with open_counted(backend, timeout=10.0) as (app, kept):
        await app.ask()

    assert [(row.outcome, row.queue_wait_ms, row.first_delta_ms) for row in kept] == [("timeout", 10_000, None)]
