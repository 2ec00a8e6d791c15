"""Rows about requests: how soon they are answered, how many, how soon their child is gone, what they hold in memory."""

import os
import select
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from client import LIMIT, Client, Connection, MeasureError
from figures import Figure, Group, percentile
from rows_flow import warm_up
from servers import Settings, Subject

__all__ = ["DISCONNECT", "IDLE", "LATENCY", "RATE", "STOPPED", "STUBBORN"]

BREATH = 0.01
"""Seconds between two requests of which only the beginning is measured: the child of the one before is reaped."""
IN_FLIGHT = 8
IDLE_STREAMS = 500
SETTLE = 2.0
"""Seconds after which idle streams are only idle."""
KILL_GRACE = 0.5
FLOOD_BLOCKS = 720
"""Blocks that make 200 MB in the CLI's form."""


def _measure_latency(subject: Subject, seconds: float) -> Mapping[str, float]:
    headers, first = [], []
    with subject.client() as client:
        warm_up(client)
        connection = client.connect()
        for _ in range(int(20 * seconds)):
            exchange = connection.request("send hello", stream=True)
            client.finish(exchange)
            headers.append((exchange.headers - exchange.sent) * 1e3)
            first.append((exchange.first - exchange.sent) * 1e3)
            time.sleep(BREATH)
    return {"headers_p50": percentile(headers, 50), "first_p50": percentile(first, 50)}


def _measure_rate(subject: Subject, seconds: float) -> Mapping[str, float]:
    answered = 0
    with subject.client() as client:
        warm_up(client)
        connections = [client.connect() for _ in range(IN_FLIGHT)]
        end, before = time.monotonic() + seconds, subject.cpu()

        def proceed() -> bool:
            nonlocal answered
            for connection in connections:
                if connection.exchange is None or connection.exchange.ended:
                    answered += connection.exchange is not None
                    connection.request("send answer", stream=False)
            return time.monotonic() >= end

        client.run(proceed)
        used = subject.cpu() - before
    return {"rate": answered / seconds, "rate_cpu": used * 1e3 / answered}


class _Children:
    """The fake children that hold the FIFO open."""

    def __init__(self, fifo: Path) -> None:
        self.fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.started = 0

    def have_started(self, count: int) -> bool:
        """Return whether there are as many by now."""
        with suppress(BlockingIOError):
            self.started += len(os.read(self.fd, 4096))
        return self.started >= count

    def wait_until_gone(self) -> None:
        """Wait for the last of them to end."""
        poll = select.poll()
        poll.register(self.fd, 0)
        if not poll.poll(LIMIT * 1e3):
            raise MeasureError(f"the child is still there after {LIMIT:g} s")


@contextmanager
def _children(fifo: Path) -> Iterator[_Children]:
    children = _Children(fifo)
    try:
        yield children
    finally:
        os.close(children.fd)


def _leave(subject: Subject, client: Client, script: str, *, stream: bool) -> float:
    """Disconnect from a request whose child has begun; return the milliseconds until the child is gone."""
    with _children(subject.alive) as children:
        connection: Connection = client.connect()
        connection.request(script, stream=stream)
        client.run(partial(children.have_started, 1))
        client.run_for(BREATH)
        began = time.monotonic()
        connection.close()
        children.wait_until_gone()
        return (time.monotonic() - began) * 1e3


def _measure_disconnect(subject: Subject, seconds: float) -> Mapping[str, float]:
    count = int(4 * seconds)
    with subject.client() as client:
        warm_up(client)
        streaming = [_leave(subject, client, "send head hold", stream=True) for _ in range(count)]
        whole = [_leave(subject, client, "send head hold", stream=False) for _ in range(count)]
    return {"leave_stream": percentile(streaming, 50), "leave_whole": percentile(whole, 50)}


def _measure_stubborn(subject: Subject, _: float) -> Mapping[str, float]:
    with subject.client() as client:
        warm_up(client)
        times = [_leave(subject, client, "ignore-term send head hold", stream=True) for _ in range(3)]
    return {"leave_stubborn": percentile(times, 50)}


def _measure_idle(subject: Subject, seconds: float) -> Mapping[str, float]:
    with _children(subject.alive) as children, subject.client() as client:
        warm_up(client)
        memory = subject.memory()
        for number in range(IDLE_STREAMS):
            client.connect().request("send head hold", stream=True)
            client.run(partial(children.have_started, number - IN_FLIGHT))
        client.run(partial(children.have_started, IDLE_STREAMS))
        client.run_for(SETTLE)
        grown, cpu = subject.memory() - memory, subject.cpu()
        client.run_for(seconds)
        used = subject.cpu() - cpu
    return {"idle_memory": grown / IDLE_STREAMS, "idle_cpu": used / seconds * 100}


def _measure_stopped(subject: Subject, seconds: float) -> Mapping[str, float]:
    with subject.client() as client:
        warm_up(client)
        before = highest = subject.memory()
        connection = client.connect()
        exchange = connection.request(f"send head repeat {FLOOD_BLOCKS} block send tail", stream=True)
        client.run(lambda: exchange.first > 0)
        connection.pause()

        def look() -> bool:
            nonlocal highest
            highest = max(highest, subject.memory())
            return exchange.ended > 0

        end = time.monotonic() + seconds
        client.run(lambda: look() or time.monotonic() >= end)
        connection.resume()
        client.run(look)
    return {"stopped_memory": (highest - before) / 1024}


LATENCY = Group(
    "latency",
    (
        Figure("headers_p50", "request to headers, cold child, p50", "ms", 4),
        Figure("first_p50", "request to first delta, cold child, p50", "ms", 5),
    ),
    _measure_latency,
)
RATE = Group(
    "rate",
    (
        Figure("rate", "short plain requests, 8 in flight", "1/s", 250, more=True),
        Figure("rate_cpu", "short plain requests: CPU of each", "ms"),
    ),
    _measure_rate,
)
IDLE = Group(
    "idle",
    (
        Figure("idle_memory", "500 idle streams, a beat each second: each", "KiB", 50),
        Figure("idle_cpu", "500 idle streams, a beat each second", "% of a core", 5),
    ),
    _measure_idle,
    Settings(heartbeat=1.0),
)
DISCONNECT = Group(
    "disconnect",
    (
        Figure("leave_stream", "disconnect to child gone, streaming, p50", "ms", 10),
        Figure("leave_whole", "disconnect to child gone, plain, p50", "ms", 10),
    ),
    _measure_disconnect,
)
STUBBORN = Group(
    "stubborn",
    (Figure("leave_stubborn", "the same, child ignores SIGTERM, grace 500 ms", "ms", (KILL_GRACE + 0.5) * 1e3),),
    _measure_stubborn,
    Settings(kill_grace=KILL_GRACE),
)
STOPPED = Group(
    "stopped",
    (Figure("stopped_memory", "client stops reading 200 MB: growth", "MiB", 2),),
    _measure_stopped,
)
