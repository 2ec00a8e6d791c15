"""Connections to OpenCode Go are retried once, used again, bounded, and closed at once."""

from typing import Any

import pytest
import trio
from opencode_sequences import ask, both_flavours, open_go, request, script
from sse_script import Answer, Cut, HttpAnswer, Sleep, Text, Thinking, Wait
from trio.testing import MockClock

PAGE = HttpAnswer(502, b"<html>502 Bad Gateway</html>", {"content-type": "text/html"})


# One retry


@both_flavours
@pytest.mark.parametrize(("failures", "end"), [(1, ["S", "T"]), (2, ["UpstreamError"]), (9, ["UpstreamError"])])
async def test_a_connection_that_cannot_be_made_is_tried_twice(
    autojump_clock: MockClock, model: str, failures: int, end: list[str]
) -> None:
    async with open_go() as go:
        go.provider.script(Answer(Thinking("")))
        go.provider.refuse = failures

        assert [letter for _, letter in await ask(go.backend, model)] == end
        assert go.provider.attempts == 2


@both_flavours
@pytest.mark.parametrize(("failures", "end"), [(1, ["S", "P", "T"]), (2, ["UpstreamError"])])
async def test_so_is_a_request_whose_connection_breaks_before_anything_is_answered(
    autojump_clock: MockClock, model: str, failures: int, end: list[str]
) -> None:
    async with open_go() as go:
        go.provider.script(*[Answer(before_headers=(Cut("fin"),))] * failures, Answer(Text("P")))

        assert [letter for _, letter in await ask(go.backend, model)] == end
        assert len(go.provider.requests) == 2


@both_flavours
async def test_nothing_is_tried_again_after_a_refusal(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        go.provider.script(PAGE, Answer(Text("P")))

        assert await ask(go.backend, model) == [(0, "UpstreamError")]
        assert len(go.provider.requests) == 1


@both_flavours
@pytest.mark.parametrize("sequence", ["0 fails", "0 P; 1 fails"])
async def test_nor_after_an_answer_has_begun(autojump_clock: MockClock, model: str, sequence: str) -> None:
    async with open_go() as go:
        seen = await go.observe(sequence, model)

        assert seen[-1][1] == "UpstreamIncompleteError"
        assert len(go.provider.requests) == 1


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"\0" * 200_000])
async def test_nor_after_an_answer_that_is_no_http(autojump_clock: MockClock, answer: bytes) -> None:
    served = 0

    async def serve(stream: trio.abc.Stream) -> None:
        nonlocal served
        served += 1
        await stream.receive_some()
        await stream.send_all(answer)

    async with open_go() as go:
        go.provider.serve_instead(serve)

        assert await ask(go.backend, "kimi-k2.6") == [(0, "UpstreamError")]
        assert served == 1


# Connections


@both_flavours
async def test_a_connection_is_used_again_once_its_answer_is_complete(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        for _ in range(3):
            assert (await ask(go.backend, model))[-1] == (0, "T")

        assert go.provider.attempts == 1
        assert len({id(asked.closed) for asked in go.provider.requests}) == 1


@both_flavours
async def test_one_that_was_closed_meanwhile_is_replaced(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        await ask(go.backend, model)
        go.provider.script(Answer(before_headers=(Cut("fin"),)), Answer(Text("P")))

        assert (await ask(go.backend, model))[-1] == (0, "T")
        assert (go.provider.attempts, len(go.provider.requests)) == (2, 3)


@both_flavours
async def test_more_requests_than_connections_wait_in_order_and_no_clock_of_theirs_runs(
    autojump_clock: MockClock, model: str, nursery: trio.Nursery
) -> None:
    seen: dict[int, Any] = {}

    async def ask_as(number: int) -> None:
        seen[number] = await ask(go.backend, model)

    async with open_go(first=50, idle=50, max_connections=1) as go:
        go.provider.script(Answer(Sleep(40), Text("P")))
        for number in range(3):
            nursery.start_soon(ask_as, number)
            await trio.testing.wait_all_tasks_blocked()
        assert (go.backend.state.in_flight, go.backend.state.queued) == (1, 2)
        await trio.sleep(200)

    assert [[letter for _, letter in each] for each in seen.values()] == [list("SPT")] * 3
    assert list(seen) == [0, 1, 2]
    assert [each[-1][0] for each in seen.values()] == [40, 80, 120]


async def test_one_that_leaves_the_queue_is_forgotten_at_once(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    async with open_go(max_connections=1) as go:
        go.provider.script(script("0 P", "kimi-k2.6"))
        nursery.start_soon(ask, go.backend, "kimi-k2.6")
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(1):
            await ask(go.backend, "kimi-k2.6")

        assert (go.backend.state.in_flight, go.backend.state.queued) == (1, 0)
        assert len(go.provider.requests) == 1
        nursery.cancel_scope.cancel()


# Cancellation


@both_flavours
async def test_leaving_while_it_connects_leaves_nothing(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        go.provider.connecting = 1e9
        with trio.move_on_after(1) as leaving:
            await ask(go.backend, model)

        assert leaving.cancelled_caught
        assert (go.backend.state.in_flight, trio.current_time()) == (0, 1)


@both_flavours
async def test_leaving_before_the_headers_closes_the_connection_at_once(autojump_clock: MockClock, model: str) -> None:
    async with open_go() as go:
        go.provider.script(Answer(before_headers=(Wait(trio.Event()),)))
        with trio.move_on_after(1):
            await ask(go.backend, model)

        await go.provider.requests[0].closed.wait()
        assert trio.current_time() == 1


@both_flavours
async def test_so_does_leaving_while_upstream_is_not_read(autojump_clock: MockClock, model: str) -> None:
    flood = Answer(*[Text("x" * 2**16)] * 100)
    async with open_go() as go:
        go.provider.script(flood)
        async with go.backend.stream(request(model)) as batches:
            await anext(batches)
            await trio.sleep(1)

        await go.provider.requests[0].closed.wait()
        assert trio.current_time() == 1


async def test_three_hundred_requests_that_leave_at_any_moment_leave_nothing(autojump_clock: MockClock) -> None:
    async with open_go(max_connections=10) as go:
        go.provider.script(Answer(Sleep(1), Text("P"), Sleep(1), before_headers=(Sleep(1),)))
        go.provider.connecting = 1
        async with trio.open_nursery() as asking:

            async def ask_for(seconds: float) -> None:
                with trio.move_on_after(seconds):
                    await ask(go.backend, "kimi-k2.6")

            for number in range(300):
                asking.start_soon(ask_for, number % 50 / 10)
        assert (go.backend.state.in_flight, go.backend.state.queued) == (0, 0)
        go.provider.connecting = 0
        go.provider.script(Answer(Text("P")))

        assert (await ask(go.backend, "kimi-k2.6"))[-1][1] == "T"
        for asked in go.provider.requests[:-1]:
            assert asked.closed.is_set() or asked.closed is go.provider.requests[-1].closed
