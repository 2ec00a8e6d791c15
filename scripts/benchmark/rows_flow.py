"""Rows about text that flows: bursts, paced streams, and one very long line."""

import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from client import Client, Exchange, MeasureError
from figures import Figure, Group, percentile
from pieces import BLOCK
from servers import Settings, Subject

__all__ = ["BURST", "GO_BURST", "GO_PACED", "LONG_LINE", "PACED", "PACED_MANY"]

Measure: TypeAlias = Callable[[Subject, float], Mapping[str, float]]

BURST_BLOCKS = 50
AT_ONCE = 8
RATE = 50
"""Deltas a second of a paced stream."""
SETTLE = 1.0
"""Seconds that paced streams run before they are measured."""
AFTERMATH = 0.1
"""Seconds after a response in which what it leaves behind (a child to reap) still costs."""


def warm_up(client: Client) -> None:
    """Make one request, so that nothing measured is done for the first time."""
    connection = client.connect()
    exchange = connection.request("send hello", stream=True)
    client.finish(exchange)
    client.run_for(AFTERMATH)


def _burst(client: Client, count: int) -> float:
    """Run ``count`` bursts at once; return the deltas a second of all together."""
    script = f"send head repeat {BURST_BLOCKS} block send tail"
    exchanges = [client.connect().request(script, stream=True) for _ in range(count)]
    client.finish(*exchanges)
    if any(exchange.deltas < BURST_BLOCKS * BLOCK for exchange in exchanges):
        raise MeasureError("deltas were lost")
    seconds = max(exchange.ended for exchange in exchanges) - min(exchange.sent for exchange in exchanges)
    client.run_for(AFTERMATH)
    return count * BURST_BLOCKS * BLOCK / seconds


def _measure_burst(subject: Subject, _: float) -> Mapping[str, float]:
    with subject.client() as client:
        warm_up(client)
        before = subject.cpu()
        one = _burst(client, 1)
        used = subject.cpu() - before
        many = _burst(client, AT_ONCE)
    return {"burst_cpu": used * 1e3 / BURST_BLOCKS * 1000 / BLOCK, "burst_rate": one, "burst_rate_8": many}


def _start_paced(client: Client, count: int, seconds: float) -> list[Exchange]:
    script = f"send head paced {int((seconds + 30) * RATE)} delta send tail"
    return [client.connect().request(script, stream=True, stamped=True) for _ in range(count)]


def _measure_paced(subject: Subject, seconds: float, streams: int) -> tuple[float, list[float]]:
    """Return the milliseconds of CPU per 1,000 deltas, and the delay of each delta in milliseconds."""
    with subject.client() as client:
        exchanges = _start_paced(client, streams, seconds)
        client.run(lambda: all(exchange.delays for exchange in exchanges))
        client.run_for(SETTLE)
        begin, before = time.monotonic(), subject.cpu()
        client.run_for(seconds)
        used = subject.cpu() - before
    delays = [delay * 1e3 for each in exchanges for arrival, delay in each.delays if arrival >= begin]
    return used * 1e6 / len(delays), delays


def _measure_eight(subject: Subject, seconds: float) -> Mapping[str, float]:
    cpu, delays = _measure_paced(subject, seconds, AT_ONCE)
    return {"paced_8_cpu": cpu, "delay_p50": percentile(delays, 50), "delay_p99": percentile(delays, 99)}


def _measure_many(subject: Subject, seconds: float) -> Mapping[str, float]:
    return {"paced_64_cpu": _measure_paced(subject, seconds, 64)[0]}


def _over_http(measure: Measure) -> Measure:
    """Return what measures the same, under other names."""

    def measure_it(subject: Subject, seconds: float) -> Mapping[str, float]:
        return {f"go_{key}": value for key, value in measure(subject, seconds).items()}

    return measure_it


def _line(subject: Subject, client: Client, name: str) -> tuple[Exchange, float]:
    """Have one long line come; return its exchange and the seconds of CPU."""
    before = subject.cpu()
    exchange = client.connect().request(f"send {name}", stream=True)
    client.finish(exchange)
    client.run_for(AFTERMATH)
    return exchange, subject.cpu() - before


def _measure_long_line(subject: Subject, seconds: float) -> Mapping[str, float]:
    with subject.client() as client:
        warm_up(client)
        _, cpu_8 = _line(subject, client, "line8")
        _, cpu_32 = _line(subject, client, "line32")
        others = _start_paced(client, 4, seconds)
        client.run(lambda: all(each.delays for each in others))
        client.run_for(SETTLE)
        line, _ = _line(subject, client, "line32")
    delays = [delay for each in others for arrival, delay in each.delays if arrival >= line.sent]
    return {"line_cpu": cpu_32, "line_growth": cpu_32 / cpu_8 / 4, "line_delay": max(delays) * 1e3}


BURST = Group(
    "burst",
    (
        Figure("burst_cpu", "burst, 1 stream of 50,000: CPU per 1,000 deltas", "ms", 3),
        Figure("burst_rate", "burst, 1 stream", "deltas/s", 250_000, more=True),
        Figure("burst_rate_8", "burst, 8 streams at once", "deltas/s", 250_000, more=True),
    ),
    _measure_burst,
)
PACED = Group(
    "paced",
    (
        Figure("paced_8_cpu", "paced, 8 streams of 50/s: CPU per 1,000 deltas", "ms", 100),
        Figure("delay_p50", "paced, 8 streams: delay of a delta, p50", "ms", 0.3),
        Figure("delay_p99", "paced, 8 streams: delay of a delta, p99", "ms", 3),
    ),
    _measure_eight,
)
PACED_MANY = Group(
    "paced64",
    (Figure("paced_64_cpu", "paced, 64 streams of 50/s: CPU per 1,000 deltas", "ms", 60),),
    _measure_many,
)
GO_BURST = Group(
    "go-burst",
    (
        Figure("go_burst_cpu", "OpenCode Go, burst of 50,000: CPU per 1,000 deltas", "ms"),
        Figure("go_burst_rate", "OpenCode Go, burst, 1 stream", "deltas/s"),
        Figure("go_burst_rate_8", "OpenCode Go, burst, 8 streams at once", "deltas/s"),
    ),
    _over_http(_measure_burst),
    Settings(over_http=True),
)
GO_PACED = Group(
    "go-paced",
    (
        Figure("go_paced_8_cpu", "OpenCode Go, paced, 8 of 50/s: CPU per 1,000", "ms"),
        Figure("go_delay_p50", "OpenCode Go, paced, 8: delay of a delta, p50", "ms"),
        Figure("go_delay_p99", "OpenCode Go, paced, 8: delay of a delta, p99", "ms"),
    ),
    _over_http(_measure_eight),
    Settings(over_http=True),
)
LONG_LINE = Group(
    "line",
    (
        Figure("line_cpu", "one line of 32 MiB: CPU", "s"),
        Figure("line_growth", "one line of 32 MiB: CPU per MiB, of 8 MiB's", "times", 1.5),
        Figure("line_delay", "one line of 32 MiB: longest delay of others", "ms", 100),
    ),
    _measure_long_line,
)
