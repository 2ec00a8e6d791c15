"""What an operator may want to know of a backend."""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

__all__ = ["BackendState", "Login", "LoginOutcome", "Plan", "PlanWindow"]

LoginOutcome: TypeAlias = Literal["ok", "logged_out", "refused", "timeout", "unknown", "no_program"]
"""What a look at a login found: ``refused`` by upstream, ``timeout`` and ``unknown`` of the program that tells."""


class Login(msgspec.Struct, frozen=True):
    """Whether upstream takes what the backend shows it; None stands for what is not known yet.

    Attributes:
        ok: What the last look that could tell has found.
        ok_source: What told last that it is.
        ok_at: When that was.
        checked_at: When the last look was.
        outcome: What that found.
        failures: How many in a row have not found it well.
    """

    ok: bool | None = None
    ok_source: Literal["auth_status", "request"] | None = None
    ok_at: datetime | None = None
    checked_at: datetime | None = None
    outcome: LoginOutcome | None = None
    failures: int = 0


class PlanWindow(msgspec.Struct, frozen=True):
    """One limit of a subscription; ``utilization`` is from 0 to 1, ``resets_at`` a Unix time."""

    status: str | None = None
    utilization: float | None = None
    resets_at: float | None = None


class Plan(msgspec.Struct, frozen=True):
    """What is known of a subscription's limits.

    Attributes:
        windows: By upstream's names, such as ``five_hour`` and ``seven_day``.
        overage: Whether usage beyond them is being paid for, in upstream's words.
        seen_at: When upstream last told.
    """

    windows: dict[str, PlanWindow]
    overage: str | None
    seen_at: datetime


class BackendState(msgspec.Struct, frozen=True):
    """What it does now; counts since its start, times in seconds. None where there is no such thing.

    Attributes:
        in_flight: Requests that are being answered.
        queued: Requests that wait.
        queue_rejections: Requests that were refused because too many waited.
        warm: Children that wait, and what became of them.
        max_concurrent: Requests that are answered at once.
        max_queue: Requests that may wait.
        version: Of its program.
        login: Whether upstream takes its credential.
        plan: What upstream has told of its limits.
        children: Processes that are alive now.
        kills: Signals that were sent to end them, by name.
    """

    in_flight: int = 0
    queued: int = 0
    queue_rejections: int = 0
    warm: dict[str, float] = {}
    max_concurrent: int | None = None
    max_queue: int | None = None
    version: str | None = None
    login: Login | None = None
    plan: Plan | None = None
    children: int = 0
    kills: dict[str, int] = {}
