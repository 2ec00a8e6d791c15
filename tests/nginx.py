"""Run Debian's nginx in front of a server, in a folder of its own, with the defaults of its `proxy_pass`."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["open_nginx", "require_nginx"]

STOP = 10
"""Seconds that nginx may take to end; it is milliseconds."""
CONFIGURATION = """
daemon off;
{user}
pid nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            {more}
        }}
    }}
}}
"""


def require_nginx() -> str:
    """Return nginx's path; without it skip the test, or fail it where ``OCP_REQUIRE_NGINX=1``."""
    if path := shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"):
        return path
    reason = "nginx is not installed"
    if os.environ.get("OCP_REQUIRE_NGINX") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def open_nginx(program: str, upstream: int, folder: Path, *, more: str = "") -> Iterator[int]:
    """Proxy a port of the loopback for the length of a block, and yield the port of nginx.

    Args:
        program: Path of nginx.
        upstream: The port that is proxied.
        folder: Takes its configuration and its temporary files.
        more: Directives beside `proxy_pass`.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, inherited = listener.getsockname()[1], listener.fileno()
        # Its worker would become nobody, who may not enter a temporary folder.
        user = "user root;" if os.geteuid() == 0 else ""
        text = CONFIGURATION.format(user=user, port=port, upstream=upstream, more=more)
        (folder / "nginx.conf").write_text(text)
        with (folder / "error.log").open("wb") as errors:
            nginx = subprocess.Popen(
                [program, "-e", "stderr", "-p", str(folder), "-c", "nginx.conf"],
                # How nginx hands its sockets to its successor: it listens from the first moment on.
                env={"NGINX": f"{inherited};"},
                pass_fds=[inherited],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                start_new_session=True,
            )
    try:
        yield port
    finally:
        nginx.terminate()
        try:
            nginx.wait(STOP)
        except subprocess.TimeoutExpired:
            # With its worker.
            os.killpg(nginx.pid, signal.SIGKILL)
            nginx.wait()
        # Shown where the test fails.
        sys.stdout.write((folder / "error.log").read_text())
