"""Over real sockets OpenCode Go is asked as over memory streams, and what only a network can do goes well, too."""

import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from mock_opencode import KEY, OpenCodeDialect, open_mock_opencode
from opencode_sequences import ask, both_flavours, request, script, told
from scripted_server import ScriptedServer, serve_connection
from sse_script import Answer, Cut, HttpAnswer, Text, Wait

from ocp_trio.errors import OcpError, UpstreamError
from ocp_trio.opencode_go import OpenCodeGoBackend, open_opencode_go

LIMIT = 20
"""Seconds that a test may take; on an idle machine it is one."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
async def mock() -> AsyncIterator[ScriptedServer]:
    with trio.fail_after(LIMIT):
        async with open_mock_opencode() as mock:
            yield mock


@asynccontextmanager
async def listen(handler: Callable[[trio.SocketStream], Any]) -> AsyncIterator[int]:
    """Serve connections with ``handler`` on a port of the loopback for the length of a block."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handler, listeners)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def letters(seen: list[tuple[float, str]]) -> list[str]:
    return [letter for _, letter in seen]


async def refused(backend: OpenCodeGoBackend) -> OcpError:
    """Ask, and return the error that there is in place of an answer."""
    with pytest.raises(OcpError) as caught:
        async with backend.stream(request("kimi-k2.6")) as batches:
            await anext(batches)
    return caught.value


# The guard


@both_flavours
async def test_boundaries_are_life_and_the_done_after_them_is_delivered(mock: ScriptedServer, model: str) -> None:
    mock.script(script("0 P; 3 B; 6 U; 7 T", model, second=0.3))  # row 1
    async with open_opencode_go(KEY, base_url=mock.url, idle_timeout=5 * 0.3) as backend:
        assert letters(await ask(backend, model)) == ["S", "P", "B", "U", "T"]


@both_flavours
async def test_silence_stalls_and_upstream_sees_the_connection_closed(mock: ScriptedServer, model: str) -> None:
    mock.script(script("0 P", model))
    async with open_opencode_go(KEY, base_url=mock.url, idle_timeout=0.2) as backend:
        assert letters(await ask(backend, model)) == ["S", "P", "stalled: idle"]
        await mock.requests[0].closed.wait()


@both_flavours
async def test_keep_alives_for_ever_end_at_their_cap(mock: ScriptedServer, model: str) -> None:
    beats = "; ".join(f"{at} c" for at in range(1, 1000))
    mock.script(script(f"0 P; {beats}", model, second=0.05))
    async with open_opencode_go(KEY, base_url=mock.url, idle_timeout=1, keepalive_cap=1.5) as backend:
        assert letters(await ask(backend, model)) == ["S", "P", "stalled: keepalive_only"]
        await mock.requests[0].closed.wait()


@both_flavours
async def test_headers_that_never_come_stall(mock: ScriptedServer, model: str) -> None:
    mock.script(Answer(before_headers=(Wait(trio.Event()),)))
    async with open_opencode_go(KEY, base_url=mock.url, first_event_timeout=0.2) as backend:
        assert letters(await ask(backend, model)) == ["stalled: creation"]
        await mock.requests[0].closed.wait()


@both_flavours
async def test_an_answer_cut_short_is_never_success(mock: ScriptedServer, model: str) -> None:
    mock.script(script("0 P; 0.2 fails", model))
    async with open_opencode_go(KEY, base_url=mock.url) as backend:
        assert letters(await ask(backend, model)) == ["S", "P", "UpstreamIncompleteError"]


# Connections


@both_flavours
async def test_a_connection_is_used_again(mock: ScriptedServer, model: str) -> None:
    async with open_opencode_go(KEY, base_url=mock.url) as backend:
        for _ in range(3):
            await ask(backend, model)

        assert len({id(asked.closed) for asked in mock.requests}) == 1


async def test_a_reset_before_the_answer_is_retried_once(mock: ScriptedServer) -> None:
    mock.script(Answer(before_headers=(Cut("rst"),)), Answer(Text("P")))
    async with open_opencode_go(KEY, base_url=mock.url) as backend:
        assert letters(await ask(backend, "kimi-k2.6")) == ["S", "P", "T"]
        assert len(mock.requests) == 2


async def test_a_port_where_nobody_listens_is_upstreams_fault() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with open_opencode_go(KEY, base_url=f"http://127.0.0.1:{unused.getsockname()[1]}") as backend:
            error = await refused(backend)

    assert type(error) is UpstreamError
    assert str(error) == "upstream cannot be reached: no connection can be made"


class _NoNames(trio.abc.HostnameResolver):
    async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def getnameinfo(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def test_so_is_a_name_that_nobody_knows() -> None:
    trio.socket.set_custom_hostname_resolver(_NoNames())
    async with open_opencode_go(KEY, base_url="http://nowhere.invalid") as backend:
        error = await refused(backend)

    assert type(error) is UpstreamError
    assert "nowhere" not in str(error)


# Leaving


@both_flavours
async def test_leaving_closes_the_connection_at_once(mock: ScriptedServer, model: str) -> None:
    mock.script(script("0 P", model))
    async with open_opencode_go(KEY, base_url=mock.url) as backend:
        async with backend.stream(request(model)) as batches:
            assert [told(await anext(batches)) for _ in "SP"] == [["S"], ["P"]]

        await mock.requests[0].closed.wait()


@pytest.mark.parametrize("proxied", [False, True])
async def test_leaving_in_the_middle_of_a_tls_handshake_does_so_too(
    monkeypatch: pytest.MonkeyPatch, proxied: bool
) -> None:
    greeted, left = trio.Event(), trio.Event()

    async def never_shake_hands(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if proxied:
            await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await stream.receive_some()
        greeted.set()
        while await stream.receive_some():
            pass
        left.set()

    with trio.fail_after(LIMIT):
        async with listen(never_shake_hands) as port:
            if proxied:
                monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
            base_url = "https://provider.invalid" if proxied else f"https://127.0.0.1:{port}"
            async with open_opencode_go(KEY, base_url=base_url) as backend:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(ask, backend, "kimi-k2.6")
                    await greeted.wait()
                    nursery.cancel_scope.cancel()

                await left.wait()
                assert backend.state.in_flight == 0


async def test_a_consumer_that_does_not_read_stops_upstream() -> None:
    sent = 0
    stopped = trio.Event()

    async def flood(stream: trio.SocketStream) -> None:
        nonlocal sent
        await stream.receive_some()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        await stream.send_all(head)
        line = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 2**14)
        while True:
            with trio.move_on_after(0.5) as stalled:
                await stream.send_all(line)
            if stalled.cancelled_caught:
                stopped.set()
                return
            sent += len(line)

    with trio.fail_after(LIMIT):
        async with (
            listen(flood) as port,
            open_opencode_go(KEY, base_url=f"http://127.0.0.1:{port}", idle_timeout=0.1) as backend,
            backend.stream(request("kimi-k2.6")) as batches,
        ):
            await anext(batches)
            await stopped.wait()

            # Less than 1 MiB is read ahead; the rest is what the kernel holds.
            assert sent < 2**24
            assert told(await anext(batches))[0].startswith("x")


# The key goes to one host only


async def test_a_redirect_is_not_followed(mock: ScriptedServer) -> None:
    async with open_mock_opencode() as elsewhere:
        mock.script(HttpAnswer(307, b"", {"location": f"{elsewhere.url}/v1/chat/completions"}))
        async with open_opencode_go(KEY, base_url=mock.url) as backend:
            error = await refused(backend)

        assert type(error) is UpstreamError
        assert "status 307" in str(error)
        assert (len(mock.requests), elsewhere.requests) == (1, [])


async def test_a_proxy_of_the_environment_is_used(mock: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", mock.url)
    async with open_opencode_go(KEY, base_url="http://provider.invalid/zen/go") as backend:
        assert letters(await ask(backend, "kimi-k2.6"))[-1] == "T"

    assert mock.requests[0].path == "http://provider.invalid/zen/go/v1/chat/completions"


async def test_but_not_for_a_host_that_needs_none(mock: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with open_opencode_go(KEY, base_url=mock.url) as backend:
        assert letters(await ask(backend, "kimi-k2.6"))[-1] == "T"


@pytest.mark.parametrize("trusted", [True, False])
async def test_only_a_certificate_that_the_system_trusts_gets_the_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trusted: bool
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    mock = ScriptedServer("", OpenCodeDialect())
    connections = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        secure: Any = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            await secure.do_handshake()
        except trio.BrokenResourceError:
            return
        await serve_connection(mock, secure)

    with trio.fail_after(LIMIT):
        async with listen(serve) as port, open_opencode_go(KEY, base_url=f"https://127.0.0.1:{port}") as backend:
            if trusted:
                assert letters(await ask(backend, "kimi-k2.6"))[-1] == "T"
            else:
                error = await refused(backend)
                assert str(error) == "upstream cannot be reached: no secure connection can be made"
                assert (connections, mock.requests) == (1, [])
