"""What is written is written at once, responses end, and a peer that does not read is let go."""

import socket
import ssl
import struct
from pathlib import Path

import pytest
import trio
import trustme
from hypercorn_apps import echo, end, flood_until_disconnect, more, quart_app, start
from hypercorn_worker import HARDENED, Peer, Receive, Scope, Send, Worker, fails_without_hardening

# A peer that does not read.


@fails_without_hardening
async def test_a_client_that_stops_reading_is_dropped_and_its_application_is_told(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    told = trio.Event()
    async with worker.serve(flood_until_disconnect(told), write_timeout=0.2) as server:
        peer = await server.connect(receive_buffer=4096)
        await peer.request("GET / HTTP/1.1")

        await told.wait()

        with pytest.raises(trio.BrokenResourceError):
            await peer.rest()
    assert [record.message for record in caplog.records] == ["write_timeout"]


async def test_a_slow_but_steady_reader_is_not_dropped() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send)
        await end(send, bytes(100_000))

    async with Worker(hardened=True, patience=30).serve(app, write_timeout=1) as server:
        peer = await server.connect(receive_buffer=4096)
        await peer.request("GET / HTTP/1.0")

        received = 0
        while data := await peer.stream.receive_some(4096):
            received += len(data)
            await trio.sleep(0.1)  # the reader's pace

        assert received > 100_000


@fails_without_hardening
async def test_a_client_that_does_not_read_does_not_hold_the_shutdown(worker: Worker) -> None:
    async with worker.serve(flood_until_disconnect(trio.Event())) as server:
        peer = await server.connect(receive_buffer=4096)
        await peer.request("GET / HTTP/1.1")
        await trio.testing.wait_all_tasks_blocked(0.05)

        server.stop.set()

        await server.stopped.wait()


@fails_without_hardening
async def test_a_client_that_asks_on_and_on_without_reading_is_dropped_with_all_that_it_asked(worker: Worker) -> None:
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"x" * 1000)
    async with worker.serve(echo, write_timeout=0.2, graceful_timeout=30) as server:
        peer = await server.connect(receive_buffer=4096)

        with pytest.raises(trio.BrokenResourceError):
            await peer.send(request * 20_000)

        server.stop.set()
        await server.stopped.wait()


async def test_an_application_that_ignores_the_disconnect_does_not_stop_the_loop() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/other":
            await echo(scope, receive, send)
            return
        await start(send)
        while True:
            await more(send, b"x" * 100)

    async with HARDENED.serve(app) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")
        await peer.more()
        await peer.stream.aclose()

        assert (await server.ask("GET /other HTTP/1.1")).body == b"GET /other "


@fails_without_hardening
async def test_accepted_sockets_have_the_limit_too_and_do_not_delay(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted: list[trio.SocketStream] = []
    accept = trio.SocketListener.accept

    async def accept_and_remember(listener: trio.SocketListener) -> trio.SocketStream:
        accepted.append(await accept(listener))
        return accepted[-1]

    monkeypatch.setattr(trio.SocketListener, "accept", accept_and_remember)
    async with worker.serve(echo, write_timeout=7) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")
        await peer.reply()

        options = (socket.TCP_USER_TIMEOUT, socket.TCP_NODELAY)
        assert [accepted[0].getsockopt(socket.IPPROTO_TCP, option) for option in options] == [8000, 1]


# One write, at once.


def data_segments(peer: Peer) -> int:
    """How many segments with data have come: ``tcpi_data_segs_in`` of Linux's ``struct tcp_info``."""
    info = peer.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
    segments: int = struct.unpack_from("I", info, 152)[0]
    return segments


@fails_without_hardening
async def test_a_small_chunk_is_written_without_a_turn_of_the_scheduler(worker: Worker) -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            await start(send)
            await more(send, b"first")
            before = turns
            for _ in range(100):
                await more(send, b"small")
            passed = turns - before
            nursery.cancel_scope.cancel()
        await end(send, b"%d" % passed)

    async with worker.serve(app) as server:
        assert (await server.ask("GET / HTTP/1.1")).body == b"first" + b"small" * 100 + b"0"


async def test_chunks_keep_their_order_however_much_the_kernel_takes_at_once() -> None:
    chunks = [bytes([65 + number % 26]) * (number * 997 % 60_000 + 1) for number in range(200)]

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send)
        for chunk in chunks:
            await more(send, chunk)
        await end(send)

    async with HARDENED.serve(app) as server:
        assert (await server.ask("GET / HTTP/1.1")).body == b"".join(chunks)


@fails_without_hardening
async def test_the_last_chunk_and_the_end_of_the_response_are_one_write(worker: Worker) -> None:
    go_on = trio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send)
        await more(send, b"first")
        await go_on.wait()
        await end(send, b"last")

    async with worker.serve(app) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")
        while b"first\r\n" not in peer.seen:
            await peer.more()
        before = data_segments(peer)
        go_on.set()

        assert (await peer.reply()).body == b"firstlast"
        assert data_segments(peer) - before == 1


@fails_without_hardening
@pytest.mark.parametrize("headers", [(), [(b"content-length", b"5")]], ids=["chunked", "length"])
async def test_a_complete_response_is_one_write(worker: Worker, headers: list[tuple[bytes, bytes]]) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send, 200, *headers)
        await end(send, b"whole")

    async with worker.serve(app) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")

        assert (await peer.reply()).body == b"whole"
        assert data_segments(peer) == 1


# The end of a response, with an application that is cancelled by it.


@fails_without_hardening
async def test_a_connection_is_closed_after_the_response_if_the_client_asked_for_it(worker: Worker) -> None:
    async with worker.serve(quart_app()) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1", "Connection: close")

        reply = await peer.reply()

        assert (reply.body, reply.headers["connection"], await peer.rest()) == (b"whole", "close", b"")


@fails_without_hardening
async def test_a_stream_over_http_1_0_ends(worker: Worker) -> None:
    async with worker.serve(quart_app()) as server:
        assert (await server.ask("GET /stream HTTP/1.0")).body == b"stream"


@fails_without_hardening
async def test_an_idle_connection_does_not_delay_the_shutdown(worker: Worker) -> None:
    async with worker.serve(quart_app(), graceful_timeout=30) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")
        await peer.reply()

        server.stop.set()

        await server.stopped.wait()


@fails_without_hardening
async def test_an_idle_connection_is_closed_after_the_keep_alive_timeout(worker: Worker) -> None:
    async with worker.serve(quart_app(), keep_alive_timeout=0.1) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")
        await peer.reply()

        assert await peer.rest() == b""


# Ordinary HTTP, which must not suffer.


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with HARDENED.serve(quart_app()) as server:
        peer = await server.connect()
        bodies = []
        for path in "/", "/stream", "/":
            await peer.request(f"GET {path} HTTP/1.1")
            bodies.append((await peer.reply()).body)

        assert bodies == [b"whole", b"stream", b"whole"]


async def test_head_has_the_headers_and_no_body() -> None:
    async with HARDENED.serve(echo) as server:
        peer = await server.connect()
        await peer.request("HEAD / HTTP/1.1")
        head = await peer.reply(head_only=True)
        await peer.request("GET / HTTP/1.1")

        assert (head.status, head.headers["content-length"]) == (200, "7")
        assert (await peer.reply()).body == b"GET / "


async def test_a_body_is_asked_for_where_the_client_waits_for_that() -> None:
    async with HARDENED.serve(echo) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 2")
        asked = await peer.reply()
        await peer.send(b"hi")

        assert asked.status == 100
        assert (await peer.reply()).body == b"POST / hi"


async def test_a_chunked_upload_arrives_however_it_is_cut() -> None:
    async with HARDENED.serve(echo) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Transfer-Encoding: chunked")
        for byte in b"3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n":
            await peer.send(bytes([byte]))

        assert (await peer.reply()).body == b"POST / abcdefg"


# TLS, where a write takes another path.


@pytest.fixture
def certificate(tmp_path: Path) -> str:
    path = tmp_path / "certificate.pem"
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    path.write_bytes(issued.private_key_and_cert_chain_pem.bytes() + authority.cert_pem.bytes())
    return str(path)


async def test_requests_are_served_over_tls(certificate: str) -> None:
    tls = ssl.create_default_context(cafile=certificate)
    async with HARDENED.serve(echo, certfile=certificate, keyfile=certificate) as server:
        peer = await server.connect(tls=tls)
        await peer.request("GET / HTTP/1.1")
        first = await peer.reply()
        await peer.request("POST / HTTP/1.1", "Connection: close", "Content-Length: 50000", body=bytes(50_000))

        assert first.body == b"GET / "
        assert (await peer.reply()).body == b"POST / " + bytes(50_000)
        assert await peer.rest() == b""


@fails_without_hardening
async def test_a_client_that_stops_reading_over_tls_is_dropped(worker: Worker, certificate: str) -> None:
    tls = ssl.create_default_context(cafile=certificate)
    told = trio.Event()
    app = flood_until_disconnect(told)
    async with worker.serve(app, write_timeout=0.2, certfile=certificate, keyfile=certificate) as server:
        peer = await server.connect(receive_buffer=4096, tls=tls)
        await peer.request("GET / HTTP/1.1")

        await told.wait()

        with pytest.raises(trio.BrokenResourceError):
            await peer.rest()
