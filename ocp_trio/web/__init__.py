"""The web application: routes, guards and responses, given its backends as arguments."""

from ocp_trio.web.app import create_app
from ocp_trio.web.lifecycle import Lifecycle

__all__ = ["Lifecycle", "create_app"]
