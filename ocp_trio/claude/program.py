"""Know the CLI as it is installed: its version and whether it is logged in."""

import logging
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
import trio
from msgspec.structs import replace

from ocp_trio.backend_state import Login, LoginOutcome
from ocp_trio.claude.version import OLDEST, output_of, read_version

__all__ = ["Program", "read_login", "watch_program"]

LOOK_AGAIN: Final = 600.0
"""Seconds between two looks while all is well: one costs 0.3 s of CPU."""
FIRST_PAUSE: Final = 10.0
"""Seconds until the next look after one that did not find a login; doubled each time."""
PATIENCE: Final = 15.0
"""Seconds that ``claude auth status`` may take; 0.3 is usual."""

logger = logging.getLogger("ocp_trio.claude")


class _Status(msgspec.Struct, frozen=True):
    """What ``claude auth status`` prints, as far as it is read; it names paths, too."""

    loggedIn: bool  # noqa: N815 (the CLI's name)


_decode = msgspec.json.Decoder(_Status).decode


class Program:
    """What is known of the CLI.

    Attributes:
        version: None while it is not known.
        login: Whether upstream takes its credential.
    """

    def __init__(self) -> None:
        self.version: str | None = None
        self.login = Login()
        self._seen = False

    def note_login(self, outcome: LoginOutcome, source: Literal["auth_status", "request"]) -> None:
        """Take what a look at the login, or a request, has found; the log tells when it changes."""
        before, now = self.login, datetime.now(UTC)
        checked = replace(before, checked_at=now, outcome=outcome)
        match outcome:
            case "ok":
                self.login = replace(checked, ok=True, ok_source=source, ok_at=now, failures=0)
            case "timeout" | "unknown":
                self.login = replace(checked, failures=before.failures + 1)
            case _:
                self.login = replace(checked, ok=False, failures=before.failures + 1)
        if outcome == "ok" and before.ok is False:
            logger.info("login_ok", extra={"source": source})
        elif outcome not in ("ok", before.outcome):
            logger.warning("login_not_ok", extra={"outcome": outcome, "hint": "run `claude /login` on the server"})

    def note_version(self, version: tuple[int, int, int] | None) -> None:
        """Take a version that was read; the log tells when it changes."""
        text = None if version is None else ".".join(map(str, version))
        if version is None and self._seen and self.version is None:
            return
        if version is None:
            logger.warning(
                "claude_version_unknown", extra={"hint": "the program did not tell its version: CLAUDE_BIN?"}
            )
        elif text != self.version and version < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            logger.warning("claude_old", extra={"found": text, "oldest": oldest, "hint": "update the CLI"})
        elif text != self.version:
            logger.info("claude_found", extra={"version": text})
        self.version, self._seen = text, True


async def read_login(binary: str, environment: Mapping[str, str]) -> LoginOutcome:
    """Return what ``claude auth status`` says; that is no proof: it does not ask upstream.

    Cancellation: ends the child, within two seconds.
    """
    # No settings of whatever folder this process runs in have a say.
    with tempfile.TemporaryDirectory(prefix="ocp-trio-", ignore_cleanup_errors=True) as folder:
        output = await output_of([binary, "auth", "status"], environment, cwd=folder, within=PATIENCE)
    if output is None:
        return "timeout"
    try:
        return "ok" if _decode(output).loggedIn else "logged_out"
    except msgspec.DecodeError:
        return "unknown"


async def watch_program(binary: str, environment: Mapping[str, str], program: Program) -> None:
    """Keep ``program`` up to date until cancelled, with growing pauses while there is no login.

    Cancellation: at once, or within two seconds where the CLI is being asked.
    """
    pause = 0.0
    while True:
        program.note_version(await read_version(binary, environment))
        outcome = await read_login(binary, environment)
        program.note_login(outcome, "auth_status")
        pause = 0.0 if outcome == "ok" else min(max(2 * pause, FIRST_PAUSE), LOOK_AGAIN)
        await trio.sleep(pause or LOOK_AGAIN)
