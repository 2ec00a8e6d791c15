"""The scripted backend yields, waits and fails as its script says."""

import pytest
import trio
from trio.testing import MockClock

from ocp_trio.completion import Batch, Completed, CompletionRequest, Message, Started, Text, TextDelta
from ocp_trio.errors import BackendUnavailableError, UpstreamError
from ocp_trio.testing import ScriptedBackend

REQUEST = CompletionRequest(model="any", messages=(Message("user", (Text("hi"),)),))
A: Batch = (TextDelta("a"),)
STOP: Batch = (Completed("stop"),)


async def test_batches_come_in_their_time_after_a_start(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, 5, STOP])

    async with backend.stream(REQUEST) as batches:
        seen = [(trio.current_time(), batch) async for batch in batches]

    assert seen == [(0, (Started(),)), (0, A), (5, STOP)]
    assert backend.requests == [REQUEST]


async def test_an_error_is_raised_where_it_stands(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A, 1, UpstreamError("overloaded")])

    async with backend.stream(REQUEST) as batches:
        assert [await anext(batches), await anext(batches)] == [(Started(),), A]
        with pytest.raises(UpstreamError, match="overloaded"):
            await anext(batches)
        assert trio.current_time() == 1


async def test_it_can_refuse_before_anything_is_started(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([A], refuse=BackendUnavailableError("no program"))

    with pytest.raises(BackendUnavailableError, match="no program"):
        async with backend.stream(REQUEST):
            pass

    assert (backend.requests, backend.running) == ([REQUEST], 0)


async def test_a_stream_runs_until_its_clean_up_has_ended(autojump_clock: MockClock) -> None:
    backend = ScriptedBackend([1000, STOP], clean_up=2)

    async def watch() -> None:
        await trio.sleep(4)
        running.append(backend.running)

    running: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        with trio.move_on_after(3):
            async with backend.stream(REQUEST) as batches:
                async for _ in batches:
                    pass
        running.append(backend.running)

    assert (running, trio.current_time()) == ([1, 0], 5)


def test_it_serves_any_model() -> None:
    backend = ScriptedBackend([])

    assert backend.resolve("whatever") == "whatever"
    assert [model.id for model in backend.models] == ["scripted"]
