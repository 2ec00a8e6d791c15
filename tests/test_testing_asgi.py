"""The in-process ASGI client behaves as a client and its server do: back-pressure, disconnects, whole bodies."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ocp_trio.testing import open_asgi_exchange

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


async def start(send: Send, status: int = 200) -> None:
    headers = [(b"Content-Type", b"text/plain")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def piece(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def test_the_application_sees_the_request(autojump_clock: MockClock) -> None:
    seen: dict[str, Any] = {}

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        seen.update(scope)
        seen["message"] = await receive()
        await start(send, 201)
        await piece(send, b"", more=False)

    async with open_asgi_exchange(
        application, "/path?a=b", method="PUT", body=b"body", headers={"X-Own": "value"}
    ) as exchange:
        assert await exchange.head() == 201
        assert await exchange.body() == b""

    assert (seen["type"], seen["method"], seen["path"], seen["query_string"]) == ("http", "PUT", "/path", b"a=b")
    assert dict(seen["headers"]) == {b"host": b"localhost", b"content-length": b"4", b"x-own": b"value"}
    assert seen["message"] == {"type": "http.request", "body": b"body", "more_body": False}


async def test_the_response_arrives_piece_by_piece_in_its_time(autojump_clock: MockClock) -> None:
    async def application(scope: Message, receive: Receive, send: Send) -> None:
        await start(send)
        for body in (b"a", b"", b"b"):
            await trio.sleep(5)
            await piece(send, body)
        await piece(send, b"c", more=False)

    async with open_asgi_exchange(application, "/") as exchange:
        await exchange.head()
        seen = [(trio.current_time(), body) async for body in exchange.pieces()]

    assert seen == [(5, b"a"), (15, b"b"), (15, b"c")]
    assert (exchange.status, exchange.headers) == (200, {"content-type": "text/plain"})


async def test_a_client_that_does_not_read_holds_the_application_up(autojump_clock: MockClock) -> None:
    sent = []

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        await start(send)
        for number in range(3):
            await piece(send, b"a", more=number < 2)
            sent.append(trio.current_time())

    async with open_asgi_exchange(application, "/") as exchange:
        await exchange.head()
        await trio.sleep(10)
        assert await exchange.receive_some() == b"a"
        await trio.sleep(10)

        assert await exchange.body() == b"aa"

    assert sent == [10, 20, 20]


async def test_a_disconnect_is_told_and_what_is_sent_after_it_is_lost(autojump_clock: MockClock) -> None:
    told: list[tuple[float, str]] = []

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        await receive()
        await start(send)
        message = await receive()
        told.append((trio.current_time(), message["type"]))
        await piece(send, b"nobody reads this")

    async with open_asgi_exchange(application, "/") as exchange:
        await exchange.head()
        await trio.sleep(7)
        exchange.disconnect()

    assert told == [(7, "http.disconnect")]


async def test_a_disconnect_frees_an_application_that_is_held_up(autojump_clock: MockClock) -> None:
    async def application(scope: Message, receive: Receive, send: Send) -> None:
        await start(send)
        await piece(send, b"nobody reads this")

    async with open_asgi_exchange(application, "/") as exchange:
        await exchange.head()
        await trio.sleep(7)
        exchange.disconnect()

    assert trio.current_time() == 7


async def test_the_end_of_the_response_is_told_as_a_disconnect(autojump_clock: MockClock) -> None:
    messages = []

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        await start(send)
        await piece(send, b"", more=False)
        messages.extend([await receive(), await receive()])

    async with open_asgi_exchange(application, "/") as exchange:
        assert await exchange.body() == b""

    assert [message["type"] for message in messages] == ["http.request", "http.disconnect"]


async def test_an_application_that_ends_without_a_response_keeps_nobody_waiting(autojump_clock: MockClock) -> None:
    async def application(scope: Message, receive: Receive, send: Send) -> None:
        await trio.sleep(1)

    async with open_asgi_exchange(application, "/") as exchange:
        with pytest.raises(trio.EndOfChannel):
            await exchange.head()


async def test_an_error_of_the_application_leaves_the_block_as_itself(autojump_clock: MockClock) -> None:
    async def application(scope: Message, receive: Receive, send: Send) -> None:
        raise LookupError("a defect")

    async def ask() -> None:
        async with open_asgi_exchange(application, "/"):
            await trio.sleep(1)

    with pytest.raises(LookupError, match="a defect"):
        await ask()


async def test_cancelling_the_client_cancels_the_application(autojump_clock: MockClock) -> None:
    ended = []

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    with trio.move_on_after(3):
        async with open_asgi_exchange(application, "/") as exchange:
            await exchange.head()

    assert ended == [3]
