"""``GET /metrics``: what a server does, for Prometheus."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from ocp_trio.backend_state import BackendState
from ocp_trio.web.ended import Ended

if TYPE_CHECKING:
    from ocp_trio.web.site import Site

__all__ = ["Metrics", "SiteCollector"]

FIRST_DELTA_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600)
TOTAL_BUCKETS: Final = (0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1200)
"""Seconds; the default limit of a request is 600."""


class Metrics:
    """What is counted of completions as they end, in a registry of this server's own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        backend = ("backend",)
        self._requests = Counter(
            "ocp_requests", "Completions that have ended.", (*backend, "outcome"), registry=self.registry
        )
        self._first_delta = Histogram(
            "ocp_first_delta_seconds",
            "Time from a request's arrival to its first visible text.",
            backend,
            buckets=FIRST_DELTA_BUCKETS,
            registry=self.registry,
        )
        self._total = Histogram(
            "ocp_request_seconds",
            "Time from a request's arrival to its end.",
            backend,
            buckets=TOTAL_BUCKETS,
            registry=self.registry,
        )
        self._queued = Histogram(
            "ocp_queue_wait_seconds",
            "Time that a request waited for its turn.",
            backend,
            buckets=FIRST_DELTA_BUCKETS,
            registry=self.registry,
        )
        self._heartbeats = Counter("ocp_heartbeats", "Heartbeats that were sent.", registry=self.registry)
        self._stalls = Counter("ocp_stalls", "Answers given up for silence.", backend, registry=self.registry)

    def count(self, ended: Ended) -> None:
        """Add one completion that has ended."""
        self._requests.labels(ended.backend, ended.outcome).inc()
        self._total.labels(ended.backend).observe(ended.seconds)
        self._queued.labels(ended.backend).observe(ended.queued)
        if ended.first_delta is not None:
            self._first_delta.labels(ended.backend).observe(ended.first_delta)
        self._heartbeats.inc(ended.heartbeats)
        # Named even while there is none, so that an alert has something to look at.
        self._stalls.labels(ended.backend).inc(int(ended.stalled))

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics as text, and its media type: of those that a scraper accepts, the best."""
        encode, media = choose_encoder(accept)
        return encode(self.registry), media


class SiteCollector(Collector):
    """Looks at a site when it is asked: what is true now is not counted, but read.

    Args:
        site: The site.
    """

    def __init__(self, site: "Site") -> None:
        self._site = site

    def describe(self) -> Iterable[Metric]:
        """Return nothing: names need not be known before they are read."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read the site's state."""
        site = self._site
        yield GaugeMetricFamily("ocp_requests_active", "Completions that run.", value=site.lifecycle.active.value)
        states = [(backend.name, backend.state) for backend in site.backends]
        yield _gauge("ocp_slots", "Requests that are answered at once, at most.", states, "max_concurrent")
        yield _gauge("ocp_slots_in_use", "Requests that are being answered.", states, "in_flight")
        yield _gauge("ocp_queue", "Requests that wait for their turn.", states, "queued")
        yield _gauge("ocp_children_alive", "Child processes that are alive, waiting ones included.", states, "children")
        rejections = CounterMetricFamily("ocp_queue_rejections", "Requests refused: too many wait.", labels=["backend"])
        kills = CounterMetricFamily("ocp_kills", "Signals sent to end children.", labels=["backend", "signal"])
        login = GaugeMetricFamily("ocp_login_ok", "Whether upstream takes the credential.", labels=["backend"])
        for name, state in states:
            rejections.add_metric([name], state.queue_rejections)
            for number, count in state.kills.items():
                kills.add_metric([name, number], count)
            if state.login is not None and state.login.ok is not None:
                login.add_metric([name], state.login.ok)
        yield from (rejections, kills, login)


def _gauge(name: str, text: str, states: Iterable[tuple[str, BackendState]], field: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["backend"])
    for backend, state in states:
        value = getattr(state, field)
        if value is not None:
            family.add_metric([backend], value)
    return family
