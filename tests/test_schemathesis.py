"""Schemathesis, which knows the server by its published document alone, finds no fault in it."""

import subprocess
import sys
from pathlib import Path

import trio
from fake_program import install, records
from server_process import Server, shared_server

ADMIN = "admin-secret"
LIMIT = 180
"""Seconds of a run; on an idle machine it is ten."""
PROGRAM = str(Path(sys.executable).with_name("schemathesis"))
# What two of its checks want cannot be said in a schema: that a conversation ends with the user's turn, and that a
# key's name may hold slashes, so that DELETE is allowed on whatever is behind one.
OPTIONS = (
    *("--generation-deterministic", "--continue-on-failure", "--no-shrink", "--no-color"),
    *("--exclude-checks", "positive_data_acceptance,allow_header_conformance"),
    # Seconds; a request that hangs is a failure.
    *("--request-timeout", "10"),
)


def run(server: Server, folder: Path, *options: str) -> None:
    """Run it against a server, in a folder of its own."""
    command = (PROGRAM, "run", f"{server.url}/openapi.json", *OPTIONS, *options)
    done = subprocess.run(
        command, cwd=folder, timeout=LIMIT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_unharmed(server: Server) -> None:
    """Fail if a request is left, or one failed by a fault of ours."""
    stats = trio.run(server.stats)
    assert (stats["activeRequests"], stats["queued"], stats["errors"], stats["timeouts"]) == (0, 0, 0, 0)
    assert stats["totalRequests"] == stats["succeeded"] + stats["cancelled"]
    assert "Traceback" not in server.output()


def test_completions(tmp_path: Path) -> None:
    with shared_server(install(tmp_path)) as server:
        run(
            server,
            tmp_path,
            *("--include-path", "/v1/chat/completions", "--phases", "examples,fuzzing", "--max-examples", "25"),
        )

        check_unharmed(server)
        assert records(tmp_path)


def test_everything_else_for_the_administrator(tmp_path: Path) -> None:
    with shared_server(install(tmp_path), CLAUDE_AUTH_MODE="multi", OCP_ADMIN_KEY=ADMIN) as server:
        run(
            server,
            tmp_path,
            *("--exclude-path", "/v1/chat/completions", "--header", f"Authorization: Bearer {ADMIN}"),
            *("--phases", "coverage,fuzzing", "--max-examples", "5"),
        )

        check_unharmed(server)
