"""The application for the ``hypercorn`` command: ``hypercorn --worker-class trio ocp_trio.asgi:app``."""

import os
import sys

from ocp_trio import hypercorn_hardening
from ocp_trio.errors import SettingError
from ocp_trio.server import Application
from ocp_trio.settings import Settings

__all__ = ["app"]

try:
    _settings = Settings.from_environment(os.environ)
except SettingError as error:
    # One line on stderr, where a traceback would bury it.
    sys.exit(f"ocp-trio: {error}")
app = Application(_settings, os.environ)
"""Configured by the environment, like the ``serve`` command."""

hypercorn_hardening.install(write_timeout=_settings.write_timeout, drain=app.drain)
