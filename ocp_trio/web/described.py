"""A web application whose endpoints are described where they are defined."""

from collections.abc import Callable
from typing import Any, TypeVar

from quart_trio import QuartTrio

from ocp_trio.web.api_document import Operation
from ocp_trio.web.connection import HTTPConnection

__all__ = ["App"]

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class App(QuartTrio):
    """Quart-Trio with our own way to send responses, and a description of each endpoint for ``/openapi.json``."""

    asgi_http_class = HTTPConnection

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.operations: dict[str, Operation] = {}

    def describe(self, operation: Operation) -> Callable[[Endpoint], Endpoint]:
        """Describe the decorated endpoint."""

        def keep(endpoint: Endpoint) -> Endpoint:
            self.operations[endpoint.__name__] = operation
            return endpoint

        return keep
