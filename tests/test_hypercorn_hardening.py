"""A fault of one connection stays in that connection, and each peer gets an answer that it understands."""

import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import pytest
import trio
from hypercorn.logging import Logger
from hypercorn.trio import run
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.typing import ResponseSummary, WWWScope
from hypercorn_apps import echo, end, more, read_body, silent_until_disconnect, start, wait_for_disconnect
from hypercorn_worker import (
    HARDENED,
    Receive,
    Scope,
    Send,
    Server,
    Worker,
    fails_without_hardening,
    hypercorn_as_it_was,
)

from ocp_trio import hypercorn_hardening
from ocp_trio.errors import OperatorError
from ocp_trio.hypercorn_hardening.connection import Connection

# The boundary of a connection.


class FailingLogger(Logger):
    """A logger that fails when a request was cut off."""

    async def access(self, _request: WWWScope, response: ResponseSummary | None, _seconds: float) -> None:
        if response is None:
            raise RuntimeError("the log is full")


@fails_without_hardening
async def test_an_error_in_one_connection_is_logged_once_and_does_not_end_the_others(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    async with worker.serve(echo, logger_class=FailingLogger) as server:
        one, other = await server.connect(), await server.connect()
        await other.request("POST /other HTTP/1.1", "Content-Length: 5", body=b"st")
        await one.request("POST /one HTTP/1.1", "Content-Length: 5", body=b"st")

        await one.send_eof()
        await one.rest()
        await other.send(b"ill")

        assert (await other.reply()).body == b"POST /other still"
    assert [record.message for record in caplog.records] == ["connection_crashed"]
    assert "the log is full" in caplog.text


async def test_cancellation_passes_the_boundary_while_an_error_beside_it_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail_when_cancelled(_: TCPServer) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("too late")

    monkeypatch.setattr(TCPServer, "run", fail_when_cancelled)
    ours, theirs = trio.socket.socketpair()
    with ours, theirs, trio.CancelScope() as scope:
        scope.cancel()
        await Connection(1.0, None, None, None, None, trio.SocketStream(ours)).run()

    assert scope.cancelled_caught
    assert [record.message for record in caplog.records] == ["connection_crashed"]


# Other protocols.


@fails_without_hardening
@pytest.mark.parametrize("settings", ["AAMAAABkAARAAAAAAAIAAAAA", "!", ""])
async def test_an_upgrade_to_cleartext_http_2_is_ignored(worker: Worker, settings: str) -> None:
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", f"HTTP2-Settings: {settings}")
    async with worker.serve(echo) as server:
        assert (await server.ask("GET /one HTTP/1.1", *upgrade)).body == b"GET /one "
        assert (await server.ask("GET /two HTTP/1.1")).body == b"GET /two "


@fails_without_hardening
async def test_the_preface_of_http_2_is_refused(worker: Worker) -> None:
    async with worker.serve(echo) as server:
        peer = await server.connect()
        await peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")

        reply = await peer.reply()

        assert (reply.status, reply.headers["connection"], await peer.rest()) == (505, "close", b"")


@fails_without_hardening
@pytest.mark.parametrize("behind", [b"", b"\x81", b"GET / HTTP/1.1\r\n"])
async def test_a_websocket_upgrade_is_an_ordinary_request_whatever_follows_it(worker: Worker, behind: bytes) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA")
    async with worker.serve(echo) as server:
        peer = await server.connect()
        await peer.request("GET /one HTTP/1.1", *upgrade, body=behind)

        assert (await peer.reply()).body == b"GET /one "
        assert (await server.ask("GET /two HTTP/1.1")).body == b"GET /two "


# Errors that no application answers.

LONG = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 20_000
LENGTHS = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
GZIP = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"
INVALID = "the request is not valid HTTP/1.1"
TOO_LONG = "the header of the request is too long"
CODING = "the transfer encoding of the request is not supported"
VERSION = "only HTTP/1.1 and HTTP/1.0 are spoken here"


@fails_without_hardening
@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        pytest.param(b"nonsense\r\n\r\n", 400, INVALID, id="request line"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400, INVALID, id="hello of TLS"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400, INVALID, id="header line"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, INVALID, id="no host"),
        pytest.param(LENGTHS, 400, INVALID, id="two lengths"),
        pytest.param(LONG, 431, TOO_LONG, id="long header, unfinished"),
        pytest.param(LONG + b"\r\n\r\n", 431, TOO_LONG, id="long header in one piece"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: 1\r\n" * 3000 + b"\r\n", 431, TOO_LONG, id="many headers"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", 400, INVALID, id="first line of another protocol"),
        pytest.param(b"GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 400, INVALID, id="target without a slash"),
        pytest.param(GZIP, 501, CODING, id="coding"),
        pytest.param(b"GET / HTTP/3.1\r\n\r\n", 505, VERSION, id="version"),
    ],
)
async def test_a_malformed_request_is_answered_with_our_error_object(
    worker: Worker, sent: bytes, status: int, message: str
) -> None:
    async with worker.serve(echo) as server:
        peer = await server.connect()
        await peer.send(sent)

        reply = await peer.reply()

        assert (reply.status, await peer.rest()) == (status, b"")
        assert reply.error == {
            "message": message,
            "type": "invalid_request_error",
            "param": None,
            "code": "invalid_request",
        }
        assert (reply.headers["content-type"], reply.headers["connection"]) == ("application/json", "close")
        assert re.fullmatch("req_[0-9a-f]{32}", reply.headers["x-request-id"])


@fails_without_hardening
async def test_a_bad_chunk_in_an_upload_is_answered_and_the_application_is_told(worker: Worker) -> None:
    told = trio.Event()

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        with pytest.raises(ConnectionError):
            await read_body(receive)
        await start(send, 200)
        await end(send, b"too late")
        told.set()

    async with worker.serve(app) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\nnonsense\r\n")

        reply = await peer.reply()

        assert (reply.status, reply.error["message"], await peer.rest()) == (400, INVALID, b"")
        await told.wait()


async def test_a_bad_chunk_beside_a_running_response_just_closes() -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await more(send, b"begun")
        await wait_for_disconnect(receive)

    async with HARDENED.serve(app) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Transfer-Encoding: chunked", body=b"5\r\nhello\r\n")
        while b"begun\r\n" not in peer.seen:
            await peer.more()
        await peer.send(b"nonsense\r\n")

        assert (await peer.rest()).partition(b"\r\n\r\n")[2] == b"5\r\nbegun\r\n"


@fails_without_hardening
async def test_an_answer_in_the_middle_of_an_upload_arrives_whole_and_ends_the_connection(worker: Worker) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await start(send, 401)
        await end(send, b"no")

    upload = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n" + bytes(8_000_000)
    async with worker.serve(app) as server:
        peer = await server.connect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, upload)
            reply = await peer.reply()

        assert (reply.status, reply.body, await peer.rest()) == (401, b"no", b"")
        assert reply.headers["connection"] == "close"


@fails_without_hardening
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_an_application_that_fails_before_its_first_byte_is_a_500(
    worker: Worker, method: str, *, begun: bool
) -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        if begun:
            await start(send, 200)
        raise RuntimeError("a defect")

    async with worker.serve(app) as server:
        peer = await server.connect()
        await peer.request(f"{method} / HTTP/1.1")

        reply = await peer.reply(head_only=method == "HEAD")

        assert (reply.status, reply.headers["content-type"]) == (500, "application/json")
        assert method == "HEAD" or reply.error["code"] == "internal_error"
        assert await peer.rest() == b""


@fails_without_hardening
async def test_an_unknown_server_name_is_answered_and_the_connection_closed(worker: Worker) -> None:
    async with worker.serve(echo, server_names=["example.org"]) as server:
        peer = await server.connect()
        await peer.request("GET / HTTP/1.1")

        reply = await peer.reply()

        assert (reply.status, reply.error["code"], await peer.rest()) == (404, "not_found", b"")


@fails_without_hardening
async def test_a_header_that_is_never_completed_is_answered_408(worker: Worker) -> None:
    async with worker.serve(echo, keep_alive_timeout=0.1) as server:
        peer = await server.connect()
        await peer.send(b"GET / HTTP/1.1\r\nHost: loc")

        reply = await peer.reply()

        assert (reply.status, reply.error["code"], await peer.rest()) == (408, "request_timeout", b"")


async def test_a_connection_without_a_request_is_closed_without_a_word() -> None:
    async with HARDENED.serve(echo, keep_alive_timeout=0.1) as server:
        peer = await server.connect()

        assert await peer.rest() == b""


# Bytes behind the body.


@fails_without_hardening
async def test_bytes_behind_the_last_request_of_a_connection_do_no_harm(worker: Worker) -> None:
    async with worker.serve(echo) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Connection: close", "Content-Length: 2", body=b"hi\r\n")

        assert (await peer.reply()).body == b"POST / hi"


@fails_without_hardening
@pytest.mark.parametrize("behind", [b"\r\n", b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["CRLF", "request"])
async def test_a_disconnect_is_noticed_although_bytes_stand_behind_the_body(worker: Worker, behind: bytes) -> None:
    told = trio.Event()
    async with worker.serve(silent_until_disconnect(told)) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Content-Length: 2", body=b"hi" + behind)
        await trio.testing.wait_all_tasks_blocked(0.01)

        await peer.stream.aclose()

        await told.wait()


@fails_without_hardening
@pytest.mark.parametrize("split", [False, True])
async def test_an_empty_line_between_two_requests_is_ignored(worker: Worker, *, split: bool) -> None:
    async with worker.serve(echo) as server:
        peer = await server.connect()
        await peer.request("POST / HTTP/1.1", "Content-Length: 2", body=b"hi" if split else b"hi\r\n")
        first = await peer.reply()
        if split:
            await peer.send(b"\r\n")
        await peer.request("GET / HTTP/1.1")

        assert (first.body, (await peer.reply()).body) == (b"POST / hi", b"GET / ")


@pytest.mark.parametrize("count", [2, 200])
async def test_pipelined_requests_are_answered_in_order(count: int) -> None:
    # 200 of them are more than is read ahead of an answer.
    requests = [
        b"GET /%d HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (number, b"x" * 1000) for number in range(count)
    ]
    async with HARDENED.serve(echo) as server:
        peer = await server.connect()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, b"".join(requests))
            replies = [(await peer.reply()).body for _ in requests]

    assert replies == [b"GET /%d " % number for number in range(count)]


# Installation and shutdown.


async def test_the_drain_runs_between_the_trigger_and_the_stop() -> None:
    replies: list[bytes] = []

    async def drain() -> None:
        assert not server.stopped.is_set()
        replies.append((await server.ask("GET /late HTTP/1.1")).body)

    async with HARDENED.serve(echo, drain=drain) as server:
        server.stop.set()
        await server.stopped.wait()

    assert replies == [b"GET /late "]


async def test_a_server_without_a_trigger_is_left_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve_upstream(_app: str, *, shutdown_trigger: object) -> None:
        triggers.append(shutdown_trigger)

    triggers: list[object] = []
    monkeypatch.setattr(hypercorn_hardening, "_serve_upstream", serve_upstream)

    await hypercorn_hardening._worker_serve(trio.sleep_forever, "app")

    assert triggers == [None]


def test_another_hypercorn_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_hardening, "version", {"hypercorn": "0.19.1"}.get)

    with pytest.raises(OperatorError, match=r"hypercorn 0\.19\.1 is installed"):
        hypercorn_hardening.install()


def test_a_second_installation_replaces_the_first() -> None:
    with hypercorn_as_it_was():
        hypercorn_hardening.install(write_timeout=1)
        hypercorn_hardening.install(write_timeout=2)

        connect = vars(run)["TCPServer"]
        assert (connect.func, connect.args) == (Connection, (2,))


SERVED = """
from hypercorn_apps import echo
from hypercorn_worker import with_lifespan
from ocp_trio import hypercorn_hardening

async def drain():
    print("drained", flush=True)

async def app(scope, receive, send):
    await with_lifespan(echo, scope, receive, send)

hypercorn_hardening.install(drain=drain)
"""


async def test_the_hypercorn_command_is_hardened_by_the_import_of_the_application(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(SERVED)
    command = [sys.executable, "-m", "hypercorn", "--worker-class", "trio", "--bind", "127.0.0.1:0", "served:app"]
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parent)}
    with trio.fail_after(30):
        process = await trio.lowlevel.open_process(
            command, cwd=tmp_path, env=environment, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            log = b""
            while not (running := re.search(rb"Running on http://127.0.0.1:(\d+)", log)):
                log += await process.stderr.receive_some()
            server = Server(int(running[1]), trio.Event(), trio.Event())
            reply = await server.ask("GET / HTTP/1.1", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
            process.terminate()
            printed = b"".join([data async for data in process.stdout])
            await process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.stdout.aclose()
            await process.stderr.aclose()

    assert (reply.body, printed, process.returncode) == (b"GET / ", b"drained\n", 0)
