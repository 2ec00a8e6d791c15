"""Run the commands of `ocp-trio`, and servers for them to talk to that are none of ours."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

import click
from click.testing import CliRunner

from ocp_trio.cli import main

__all__ = ["Done", "leaves", "open_impostor", "run"]

OURS = ("CLAUDE", "OCP_", "OPENAI_", "OPENCODE_", "PROXY_API_KEY", "XDG_")


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: str, stdin: str | None = None, **environment: str | None) -> Done:
    """Run a command in an environment that says nothing of any server but what is given."""
    cleared = {name: None for name in os.environ if name.startswith(OURS)}
    done = CliRunner().invoke(
        main, arguments, input=stdin, env={**cleared, **environment}, catch_exceptions=False, prog_name="ocp-trio"
    )
    return Done(done.exit_code, done.stdout, done.stderr)


def leaves(command: click.Command, *path: str) -> list[tuple[tuple[str, ...], click.Command]]:
    """Return the commands below one that run something, with their paths."""
    if not isinstance(command, click.Group):
        return [(path, command)]
    with click.Context(command) as context:
        found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [leaf for name, below in found if below for leaf in leaves(below, *path, name)]


@contextmanager
def open_impostor(answers: Mapping[str, Any], *, status: int = 200, kind: str = "application/json") -> Iterator[str]:
    """Serve fixed answers by path for the length of a block, and yield the address; other paths get ``answers[""]``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0], answers.get(""))
            body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
