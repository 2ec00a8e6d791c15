"""What the routes of one server share."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import trio
from quart import Response
from quart_trio.wrappers import TrioResponse

from ocp_trio.completion import Backend
from ocp_trio.errors import ModelNotFoundError, OcpError
from ocp_trio.logs import LogRing
from ocp_trio.openai.errors import error_response
from ocp_trio.settings import Settings
from ocp_trio.store import Store
from ocp_trio.web.known_keys import KnownKeys
from ocp_trio.web.lifecycle import Lifecycle
from ocp_trio.web.metrics import Metrics
from ocp_trio.web.stats import Stats

__all__ = ["Site", "failure"]


@dataclass(kw_only=True)
class Site:
    """The backends of a server, its settings, and what it knows of itself.

    Attributes:
        settings: Those of the next request: they are replaced as a whole, so a request keeps those that it began with.
        tune: Lets the backends follow them.
        changed: The settings that are no longer as the server was started with.
        known_keys: Whose holders it has seen.
    """

    backends: tuple[Backend, ...]
    settings: Settings
    tune: Callable[[Settings], None]
    ring: LogRing
    lifecycle: Lifecycle
    store: Store | None = None
    stats: Stats = field(default_factory=Stats)
    metrics: Metrics = field(default_factory=Metrics)
    changed: dict[str, Any] = field(default_factory=dict)
    known_keys: KnownKeys = field(init=False)
    started: float = field(default_factory=trio.current_time)

    def __post_init__(self) -> None:
        """Begin without knowing anybody."""
        self.known_keys = KnownKeys(trusted=self.settings.store_down == "allow")

    def change_settings(self, values: dict[str, Any]) -> None:
        """Give the next request other settings."""
        self.settings = replace(self.settings, **values)
        self.changed |= values
        self.tune(self.settings)

    @property
    def epoch(self) -> tuple[object, ...]:
        """What settings add to the cache's key: answers from before a change are not those from after it."""
        settings = self.settings
        tools = settings.allowed_tools, settings.mcp_config, settings.setting_sources
        return (sorted(self.changed.items()), *tools)

    def backend_for(self, model: str) -> tuple[Backend, str]:
        """Return the backend that serves a model, and its id there.

        Raises:
            ModelNotFoundError: none does.
        """
        for backend in self.backends:
            if resolved := backend.resolve(model):
                return backend, resolved
        raise ModelNotFoundError(f"the model {model[:100]!r} does not exist here: GET /v1/models lists those that do")


def failure(error: OcpError) -> Response:
    """Make the response that reports an error."""
    report = error_response(error)
    return TrioResponse(report.body, status=report.status, headers=dict(report.headers))
