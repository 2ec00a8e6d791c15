"""The JSON objects of ``/health``, ``/status`` and ``/usage``, in the shapes that users of the Node proxy know."""

from typing import Literal, TypedDict

__all__ = [
    "BackendStatus",
    "Config",
    "Counters",
    "Health",
    "LoginStatus",
    "ModelUsage",
    "PlanStatus",
    "PlanUsage",
    "PlanWindow",
    "Proxy",
    "ProxyUsage",
    "Requests",
    "Status",
    "StoreStatus",
    "ToldError",
]

ServerStatus = Literal["ok", "draining"]


class LoginStatus(TypedDict):
    """Whether upstream takes the credential of the CLI; null where it is not known (yet)."""

    ok: bool | None
    okSource: str | None
    okAt: str | None
    lastCheck: str | None
    lastOutcome: str | None
    consecutiveFailures: int


class Slots(TypedDict):
    """Requests that are answered at once."""

    max: int | None
    inUse: int


class Queue(TypedDict):
    """Requests that wait for that."""

    max: int | None
    queued: int
    rejections: int


class BackendStatus(TypedDict):
    """What one backend does; ``pool`` tells of its children that wait."""

    name: str
    version: str | None
    slots: Slots
    queue: Queue
    children: int
    kills: dict[str, int]
    pool: dict[str, float]


class Config(TypedDict):
    """Settings that clients may want to know; the timeout is in milliseconds, 0 for none."""

    timeout: int
    maxConcurrent: int


class Counters(TypedDict):
    """Completions since the start: ``totalRequests`` is the sum of all that follow it."""

    totalRequests: int
    activeRequests: int
    succeeded: int
    errors: int
    timeouts: int
    cancelled: int


class Waiting(TypedDict):
    """Of all backends."""

    queued: int
    queueRejections: int


class HealthCounters(Counters, Waiting):
    """Both."""


class Concurrency(Waiting):
    """Of all backends; the limits are those of ``claude``."""

    maxConcurrent: int
    maxQueue: int
    inflight: int


class StoreStatus(TypedDict):
    """Whether the store answers; ``lostRows`` counts requests that ended while it did not."""

    engine: str
    ok: bool
    cause: str | None
    lostRows: int


class Health(TypedDict):
    """The state of the server; times in milliseconds."""

    status: ServerStatus
    version: str
    uptime: int
    authMode: str
    instanceName: str
    auth: LoginStatus
    backends: list[BackendStatus]
    config: Config
    stats: HealthCounters
    concurrency: Concurrency
    store: StoreStatus | None


class Proxy(TypedDict):
    """The server itself."""

    status: ServerStatus
    version: str
    uptime: int
    auth: LoginStatus


class Requests(TypedDict):
    """Completions since the start."""

    total: int
    active: int
    succeeded: int
    errors: int
    timeouts: int
    cancelled: int


class ToldError(TypedDict):
    """An error that a client was told."""

    time: str
    message: str


class PlanWindow(TypedDict):
    """One limit of the subscription; ``resetsIn`` is in seconds."""

    status: str | None
    utilization: float | None
    percent: int | None
    resetsIn: int | None
    resetsAt: str | None


class ExtraUsage(TypedDict):
    """Whether usage beyond the limits is being paid for."""

    status: str | None


class PlanStatus(TypedDict):
    """What upstream has told of the subscription's limits."""

    currentSession: PlanWindow | None
    weeklyLimits: dict[str, PlanWindow]
    extraUsage: ExtraUsage
    seenAt: str


class Status(TypedDict):
    """The state of the server in short, with the newest errors last."""

    proxy: Proxy
    requests: Requests
    plan: PlanStatus | None
    recentErrors: list[ToldError]


class ProxyUsage(Counters):
    """What the server did."""

    uptime: int


class ModelUsage(TypedDict):
    """What one model did; times in milliseconds."""

    requests: int
    successes: int
    errors: int
    timeouts: int
    cancelled: int
    avgElapsed: int
    maxElapsed: int


class PlanUsage(TypedDict):
    """The subscription's limits; null until upstream has told of them."""

    status: ServerStatus
    fetchedAt: str
    plan: PlanStatus | None
    proxy: ProxyUsage
    models: dict[str, ModelUsage]
