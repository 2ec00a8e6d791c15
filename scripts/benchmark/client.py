"""Speak HTTP/1.1 over bare sockets, many exchanges at once, and note what arrives when."""

import json
import re
import selectors
import socket
import time
from collections.abc import Callable
from typing import Self, TypeVar

__all__ = ["Client", "Connection", "Exchange", "MeasureError"]

READ_SIZE = 2**18
LIMIT = 60.0
"""Seconds after which a measurement is given up."""
_MARK = b'"content":"'
_TEXT = re.compile(rb'"content": ?"[^"]')
_STAMPS = re.compile(rb'"content": ?"(\d{8})"')
_END = b"0\r\n\r\n"


class MeasureError(Exception):
    """What was to be measured did not happen."""


class Exchange:
    """One request, and what has come of its response; times are those of `time.monotonic`, in seconds.

    Attributes:
        sent: When the request was sent.
        headers: When the response's headers were complete.
        first: When the first text was here.
        ended: When the response was complete.
        size: Bytes received.
        deltas: Frames with a ``content`` counted so far, that of the role included.
        delays: (arrival, seconds since its sending) of every stamped delta, if ``stamped``.
    """

    def __init__(self, *, stamped: bool) -> None:
        self.sent = time.monotonic()
        self.headers = self.first = self.ended = 0.0
        self.size = self.deltas = 0
        self.delays: list[tuple[float, float]] = []
        self._stamped = stamped
        self._rest = b""
        self._left: int | None = None

    def feed(self, data: bytes) -> None:
        """Take what has been received."""
        now = time.monotonic()
        self.size += len(data)
        if not self.headers:
            self._rest += data
            head, found, data = self._rest.partition(b"\r\n\r\n")
            if not found:
                return
            self._rest = b""
            self._begin(head, now)
        self.take(data, now)

    def _begin(self, head: bytes, now: float) -> None:
        self.headers = now
        if not head.startswith(b"HTTP/1.1 200"):
            raise MeasureError(f"the server answered {head.splitlines()[0].decode('latin-1')}")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        self._left = int(length[1]) if length else None

    def take(self, data: bytes, now: float) -> None:
        """Take a piece of the body."""
        window = self._rest + data
        if not self.first and _TEXT.search(window):
            self.first = now
        if self._stamped:
            self._rest = self._note_delays(window, now)
        else:
            self.deltas += window.count(_MARK)
            self._rest = window[1 - len(_MARK) :]
        if self._left is not None:
            self._left -= len(data)
        if self._left == 0 or (self._left is None and window.endswith(_END)):
            self.ended = now

    def _note_delays(self, window: bytes, now: float) -> bytes:
        cut = 0
        for stamp in _STAMPS.finditer(window):
            cut = stamp.end()
            self.delays.append((now, (now * 1e6 - int(stamp[1])) % 1e8 / 1e6))
        return window[cut:]


E = TypeVar("E", bound=Exchange)


class Connection:
    """One connection, which carries one exchange after another."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.socket = socket.create_connection(client.address)
        self.socket.settimeout(0)
        self.exchange: Exchange | None = None
        self.resume()

    def request(self, script: str, *, stream: bool, stamped: bool = False) -> Exchange:
        """Send a request whose prompt tells the fake child what to do."""
        return self.begin(Exchange(stamped=stamped), script, stream=stream)

    def begin(self, exchange: E, script: str, *, stream: bool) -> E:
        """Send a request, of which ``exchange`` is to take the response."""
        body = json.dumps(
            {
                "model": self._client.model,
                "stream": stream,
                "messages": [{"role": "user", "content": f"bench: {script} end "}],
            }
        ).encode()
        host, port = self._client.address
        head = f"POST {self._client.path} HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n"
        self.exchange = exchange
        self.socket.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        return exchange

    def receive(self) -> None:
        """Take what there is."""
        try:
            data = self.socket.recv(READ_SIZE)
        except BlockingIOError:
            return
        exchange = self.exchange
        if not data or exchange is None:
            self.close()
            if exchange is not None and not exchange.ended:
                raise MeasureError("the server closed the connection")
            return
        exchange.feed(data)

    def pause(self) -> None:
        """Stop reading."""
        self._client.selector.unregister(self.socket)

    def resume(self) -> None:
        """Read again."""
        self._client.selector.register(self.socket, selectors.EVENT_READ, self)

    def close(self) -> None:
        """Close it, whatever is under way."""
        if self.socket.fileno() >= 0:
            if self.socket.fileno() in self._client.selector.get_map():
                self._client.selector.unregister(self.socket)
            self.socket.close()


class Client:
    """All connections to one server; a context manager that closes them."""

    def __init__(self, address: tuple[str, int], path: str, model: str) -> None:
        self.address = address
        self.path = path
        self.model = model
        self.selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        for key in list(self.selector.get_map().values()):
            key.data.close()
        self.selector.close()

    def connect(self) -> Connection:
        """Open a connection."""
        return Connection(self)

    def run(self, until: Callable[[], bool], *, limit: float = LIMIT) -> None:
        """Receive on all connections until a condition holds.

        Raises:
            MeasureError: it does not within ``limit`` seconds, or a response is not what it has to be.
        """
        deadline = time.monotonic() + limit
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                raise MeasureError(f"nothing came of it within {limit:g} s")
            for key, _ in self.selector.select(min(left, 0.1)):
                key.data.receive()

    def finish(self, *exchanges: Exchange) -> None:
        """Receive on all connections until these exchanges have ended.

        Raises:
            MeasureError: they do not.
        """
        self.run(lambda: all(exchange.ended for exchange in exchanges))

    def run_for(self, seconds: float) -> None:
        """Receive on all connections for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                key.data.receive()
