"""An HTTP/1.1 client over a bare socket that sees every byte when it comes."""

import json
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import h11
import trio

__all__ = ["CHAT", "Json", "RawClient", "get", "open_client", "request_bytes"]

CHAT = "/v1/chat/completions"
Json: TypeAlias = Any  # whatever JSON can say


def request_bytes(method: str, path: str, body: object = None, **headers: str) -> bytes:
    """Return a whole request; a ``body`` becomes JSON, an underscore in a header's name a hyphen."""
    data = b"" if body is None else json.dumps(body).encode()
    fields = {"host": "localhost", "content-length": str(len(data))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + data


class RawClient:
    """One connection, and the response that is being read from it.

    Attributes:
        status: Status of the response, once `head` has returned.
        headers: Its headers, names in lower case.
        body: What has been read of its body so far.
    """

    def __init__(self, connection: trio.socket.SocketType) -> None:
        self.stream = trio.SocketStream(connection)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self._parser = h11.Connection(h11.CLIENT)

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> None:
        """Send a request; on a connection that has served one, the next."""
        if self._parser.our_state is h11.DONE:
            self._parser.start_next_cycle()
        self.body = b""
        # Only so that the parser knows what it is a response to: what is sent are our own bytes.
        self._parser.send(h11.Request(method=method, target=path, headers=[("host", "localhost")]))
        self._parser.send(h11.EndOfMessage())
        await self.stream.send_all(request_bytes(method, path, body, **headers))

    async def _event(self) -> object:
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            self._parser.receive_data(await self.stream.receive_some(2**16))
        return event

    async def head(self) -> int:
        """Read the head of the response and return its status."""
        response = await self._event()
        assert isinstance(response, h11.Response), response
        self.status = response.status_code
        self.headers = {name.decode(): value.decode() for name, value in response.headers}
        return self.status

    def peek(self) -> bytes:
        """Look at what has come and was not read.

        Raises:
            BlockingIOError: nothing has.
        """
        with socket.socket(fileno=os.dup(self.stream.socket.fileno())) as same:
            return same.recv(2**16, socket.MSG_PEEK | socket.MSG_DONTWAIT)

    def reset(self) -> None:
        """Close so that the server gets a reset instead of an end."""
        self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.socket.close()

    async def receive_some(self) -> bytes:
        """Return the next piece of the body; ``b""`` at its end."""
        event = await self._event()
        if isinstance(event, h11.EndOfMessage):
            return b""
        assert isinstance(event, h11.Data), event
        self.body += event.data
        return bytes(event.data)

    async def read_until(self, text: str) -> None:
        """Read up to the piece of the body that completes ``text``."""
        while text.encode() not in self.body:
            assert await self.receive_some(), f"{text!r} is not in {self.body!r}"

    async def rest(self) -> bytes:
        """Read to the end of the body, and return all of it."""
        while await self.receive_some():
            pass
        return self.body

    async def answer(self) -> Json:
        """Read a whole response and decode its JSON."""
        await self.head()
        return json.loads(await self.rest())

    @property
    def error(self) -> tuple[int, str, str]:
        """Status, type and code of a whole response that reports an error."""
        error = json.loads(self.body)["error"]
        return self.status, error["type"], error["code"]


@asynccontextmanager
async def open_client(port: int, *, receive_buffer: int | None = None) -> AsyncIterator[RawClient]:
    """Connect for the length of a block.

    Args:
        port: Of the loopback.
        receive_buffer: Bytes that the kernel takes for a client that does not read.
    """
    connection = trio.socket.socket()
    with connection:
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await connection.connect(("127.0.0.1", port))
        yield RawClient(connection)


async def get(port: int, path: str, **headers: str) -> Json:
    """Return the JSON that is served at ``path``."""
    async with open_client(port) as client:
        await client.ask("GET", path, **headers)
        return await client.answer()
