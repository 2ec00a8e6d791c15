"""A malformed request is answered at once, in our one shape, starts nothing, and harms nobody else."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from fake_program import install, records
from hypercorn_worker import Peer, Reply
from malformed import ADMIN, CUT, FRAMING, GOOD, HEADERS, TARGETS, Case, get, post
from server_process import Server, shared_server

PROMPTLY = 10
"""Seconds; an answer takes about a millisecond, and a stalled request would be ended after at least twice as long."""


class Site:
    """A server, and what its CLI has been run for."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self._folder = folder

    async def ask(self, *pieces: bytes, cut: bool = False, replies: int = 1) -> list[Reply]:
        """Send bytes on a connection of their own, and return what is answered."""
        with trio.fail_after(PROMPTLY), trio.socket.socket() as connection:
            await connection.connect(("127.0.0.1", self.server.port))
            peer = Peer(connection, trio.SocketStream(connection))
            for piece in pieces:
                await peer.send(piece)
            if cut:
                await peer.send_eof()
            found: list[Reply] = []
            while len(found) < replies:
                reply = await peer.reply()
                found += [reply] if reply.status != 100 else []
            return found

    async def check_unharmed(self) -> None:
        """Fail if anything was started, or the server does not serve any more."""
        assert records(self._folder) == []
        assert (await self.server.stats())["totalRequests"] == 0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("fake")
    with shared_server(install(folder), CLAUDE_AUTH_MODE="multi", OCP_ADMIN_KEY=ADMIN) as server:
        yield Site(server, folder)


def check_shape(reply: Reply) -> None:
    assert reply.headers["content-type"] == "application/json"
    assert re.fullmatch("req_[0-9a-f]+", reply.headers["x-request-id"])
    error = reply.error
    assert set(error) == {"message", "type", "param", "code"}
    assert 0 < len(error["message"]) < 500
    assert isinstance(error["code"], str)
    assert reply.status == 403 or error["type"] == "invalid_request_error"
    assert reply.status != 405 or reply.headers["allow"]


def cases(table: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("sent", "status"), [pytest.param(sent, status, id=name) for name, sent, status in table]
    )


async def check_refused(site: Site, sent: bytes, status: int, *, cut: bool = False) -> None:
    (reply,) = await site.ask(sent, cut=cut)

    check_shape(reply)
    assert reply.status == status
    await site.check_unharmed()


@cases(FRAMING)
async def test_wrong_on_the_wire(site: Site, sent: bytes, status: int) -> None:
    await check_refused(site, sent, status)


@cases(TARGETS)
async def test_wrong_in_the_target(site: Site, sent: bytes, status: int) -> None:
    await check_refused(site, sent, status)


@cases(HEADERS)
async def test_wrong_in_a_header(site: Site, sent: bytes, status: int) -> None:
    await check_refused(site, sent, status)


@cases(CUT)
async def test_cut_by_a_client_that_still_reads(site: Site, sent: bytes, status: int) -> None:
    await check_refused(site, sent, status, cut=True)


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"\r\n" * 100])
async def test_a_connection_without_a_request_is_closed(site: Site, sent: bytes) -> None:
    with trio.fail_after(PROMPTLY), trio.socket.socket() as connection:
        await connection.connect(("127.0.0.1", site.server.port))
        peer = Peer(connection, trio.SocketStream(connection))
        await peer.send(sent)
        await peer.send_eof()

        assert await peer.rest() == b""


@pytest.mark.parametrize("name", ["two lengths that differ", "chunk longer than its size", "no host", "foreign host"])
async def test_it_does_not_matter_how_it_is_split(site: Site, name: str) -> None:
    sent, status = next((sent, status) for each, sent, status in FRAMING if each == name)

    (reply,) = await site.ask(*(sent[at : at + 1] for at in range(len(sent))))

    check_shape(reply)
    assert reply.status == status


NOTHING = get(b"/nothing")
GARBAGE = b"nonsense\r\n"


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        pytest.param(NOTHING * 20, [404] * 20, id="twenty requests"),
        pytest.param(NOTHING + GARBAGE, [404, 400], id="garbage behind a request"),
        pytest.param(NOTHING + get(b"/health", version=b"HTTP/3.0"), [404, 505], id="another version"),
        pytest.param(NOTHING + get(b"/health", b"X: " + b"x" * 20_000 + b"\r\n"), [404, 431], id="long header"),
        pytest.param(post(b"Content-Length: 2\r\n", b"{}") * 3, [400] * 3, id="bodies"),
        pytest.param(post(b"Content-Length: 2\r\n", b"{}" + GOOD + b"\n"), [400, 400], id="more body than its length"),
    ],
)
async def test_pipelined_requests_are_answered_one_by_one(site: Site, sent: bytes, statuses: list[int]) -> None:
    replies = await site.ask(sent, replies=len(statuses))

    assert [reply.status for reply in replies] == statuses
    for reply in replies:
        check_shape(reply)
    await site.check_unharmed()


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "BREW")


async def test_every_other_method_of_every_route_is_refused(site: Site) -> None:
    paths: dict[str, dict[str, object]] = (await site.server.get("/openapi.json"))["paths"]
    for path, served in paths.items():
        for method in METHODS:
            # What is behind a key's name is part of it.
            if method.lower() not in served and (method, path) != ("DELETE", "/api/keys/{id_or_name}/quota"):
                target = path.replace("{", "").replace("}", "").encode()
                (reply,) = await site.ask(get(target, method=method.encode()))
                check_shape(reply)
                assert (method, path, reply.status) == (method, path, 405)
                assert set(map(str.lower, reply.headers["allow"].split(", "))) >= set(served)

    await site.check_unharmed()
