"""A web application whose endpoints are described where they are defined."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from quart import g
from quart_trio import QuartTrio

from ocp_trio.web.api_document import Operation
from ocp_trio.web.connection import HTTPConnection

__all__ = ["App"]

ExceptionInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]

logger = logging.getLogger("ocp_trio.web")

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class App(QuartTrio):
    """Quart-Trio with our own way to send responses, and a description of each endpoint for ``/openapi.json``."""

    asgi_http_class = HTTPConnection

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.operations: dict[str, Operation] = {}

    def log_exception(self, exception_info: ExceptionInfo) -> None:
        """Log a defect as ours: Quart's own line would quote its message."""
        logger.error("internal_error", extra={"id": g.get("request_id")}, exc_info=exception_info)

    def describe(self, operation: Operation) -> Callable[[Endpoint], Endpoint]:
        """Describe the decorated endpoint."""

        def keep(endpoint: Endpoint) -> Endpoint:
            self.operations[endpoint.__name__] = operation
            return endpoint

        return keep
