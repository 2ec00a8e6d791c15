"""Equal requests of one caller get the same answer for a while, streamed as if it were new."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from web_app import WebApp, frames, open_web_app

from ocp_trio.completion import Completed, Refusal, TextDelta, ToolCallStart, Usage
from ocp_trio.errors import UpstreamError
from ocp_trio.store import open_store
from ocp_trio.testing import ScriptedBackend
from ocp_trio.testing.backend import Step

LONG = "wörter " * 30
ANSWER: list[Step] = [(TextDelta(LONG),), (Completed("stop", Usage(input=3, output=5)),)]


@asynccontextmanager
async def open_cached(tmp_path: Path, backend: ScriptedBackend, **settings: Any) -> AsyncIterator[WebApp]:
    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(backend, store=store, **{"cache_ttl": 60.0, **settings}) as app,
    ):
        yield app


async def test_a_hit_is_streamed_in_pieces_with_the_headers_of_a_live_stream(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_cached(tmp_path, backend) as app:
        await app.ask(stream=True)
        async with app.chat(stream=True, stream_options={"include_usage": True}) as exchange:
            await exchange.head()
            assert exchange.headers["x-accel-buffering"] == "no"
            assert exchange.headers["cache-control"] == "no-cache, no-transform"
            seen = frames(await exchange.body())

    assert len(backend.requests) == 1
    assert (seen[0], seen[-3:]) == ("role", ["finish stop", "usage", "[DONE]"])
    assert [len(frame) for frame in seen[1:-3]] == [80, 80, 50]
    assert "".join(seen[1:-3]) == LONG


async def test_what_was_streamed_is_also_the_plain_answer(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_cached(tmp_path, backend) as app:
        await app.ask(stream=True)
        status, body = await app.ask()

    assert (status, len(backend.requests)) == (200, 1)
    assert LONG.encode() in body


@pytest.mark.parametrize(
    "changed",
    [
        {"max_tokens": 5},
        {"reasoning_effort": "low"},
        {"stop": ["x"]},
        {"messages": [{"role": "user", "content": "Hi"}]},
        {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}]},
        {"model": "other"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]}]},
    ],
    ids=["limit", "effort", "stop", "text", "system", "model", "asked not to"],
)
async def test_any_other_request_is_answered_anew(tmp_path: Path, changed: dict[str, Any]) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_cached(tmp_path, backend) as app:
        await app.ask()
        await app.ask(**changed)

    assert len(backend.requests) == 2


@pytest.mark.parametrize(
    "changed", [{"session_id": "other"}, {"temperature": 0.2}, {"user": "u"}], ids=["session", "drawing", "user"]
)
async def test_what_shapes_no_answer_makes_no_other_request(tmp_path: Path, changed: dict[str, Any]) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_cached(tmp_path, backend) as app:
        await app.ask()
        await app.ask(**changed)

    assert len(backend.requests) == 1


@pytest.mark.parametrize(
    "script",
    [
        [(TextDelta("a"),), UpstreamError("x")],
        [(TextDelta("a"), Completed("length"))],
        [(Refusal("no"), Completed("stop"))],
        [(ToolCallStart(0, "c", "f"), Completed("stop"))],
        [(TextDelta("a"),)],
    ],
    ids=["failed", "cut", "refused", "a call", "incomplete"],
)
async def test_only_a_text_that_ended_by_itself_is_kept(tmp_path: Path, script: list[Step]) -> None:
    backend = ScriptedBackend(script)

    async with open_cached(tmp_path, backend) as app:
        await app.ask()
        await app.ask()

    assert len(backend.requests) == 2


async def test_without_the_setting_nothing_is_kept(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_cached(tmp_path, backend, cache_ttl=float("inf")) as app:
        await app.ask()
        await app.ask()

    assert len(backend.requests) == 2


async def test_two_callers_never_share_an_answer(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with (
        open_store(tmp_path / "store.db") as store,
        open_web_app(backend, store=store, cache_ttl=60.0, auth_mode="multi", admin_key="admin") as app,
    ):
        for name in ("alice", "bob"):
            key = (await store.keys.create(name)).secret
            await app.ask({"authorization": f"Bearer {key}"})

    assert len(backend.requests) == 2


async def test_the_cache_tells_what_it_holds_and_can_be_cleared(tmp_path: Path) -> None:
    backend = ScriptedBackend(ANSWER)

    async with open_cached(tmp_path, backend) as app:
        await app.ask()
        await app.ask()
        _, stats = await app.get("/cache/stats")
        assert (stats["entries"], stats["totalHits"], stats["inflight"]) == (1, 1, 0)
        assert await app.get("/cache", "DELETE") == (200, {"cleared": 1})
        await app.ask()

    assert len(backend.requests) == 2
