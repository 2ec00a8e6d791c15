"""Bind the socket that the server listens on, and say which setting is wrong where that fails."""

import errno
import socket

from ocp_trio.errors import SettingError
from ocp_trio.settings import Settings

__all__ = ["BACKLOG", "listen"]

BACKLOG = 1024
"""Connections that may wait to be accepted."""


def listen(settings: Settings) -> socket.socket:
    """Bind the socket that the server listens on.

    Raises:
        SettingError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in settings.bind else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.bind.strip("[]"), settings.port))
        listener.listen(BACKLOG)
    except UnicodeError as error:
        listener.close()
        raise SettingError("CLAUDE_BIND", settings.bind, "this is no host name") from error
    except OSError as error:
        listener.close()
        problem = f"cannot listen on {settings.bind} port {settings.port}: {error.strerror}"
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise SettingError("CLAUDE_BIND", settings.bind, problem) from error
        raise SettingError("CLAUDE_PROXY_PORT", settings.port, problem) from error
    return listener
