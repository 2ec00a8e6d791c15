"""Remember what the CLI has told of a subscription's limits."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from ocp_trio.backend_state import Plan, PlanWindow
from ocp_trio.claude.lines import RateLimitInfo

__all__ = ["learned"]

MAX_WINDOWS: Final = 20
"""Limits that are remembered: a child can make up any number of names."""
MAX_TEXT: Final = 64
"""Characters of a name or status."""

END_OF_TIME: Final = 253_402_300_800
"""The Unix time that no date has any more."""


def learned(plan: Plan | None, told: Iterable[RateLimitInfo]) -> Plan | None:
    """Return what is known after some ``rate_limit_event`` lines; what they do not mention stays."""
    for info in told:
        windows = dict(plan.windows) if plan else {}
        if info.rateLimitType:
            windows[info.rateLimitType[:MAX_TEXT]] = _window(info.status, info.utilization, info.resetsAt)
        for name, each in (info.unifiedWindows or {}).items():
            windows[name[:MAX_TEXT]] = _window(each.status, each.utilization, each.resetsAt)
        overage = None if info.isUsingOverage is None else "in use" if info.isUsingOverage else "not in use"
        if overage is None and plan is not None:
            overage = plan.overage
        plan = Plan(dict(islice(windows.items(), MAX_WINDOWS)), overage, datetime.now(UTC))
    return plan


def _window(status: str | None, utilization: float | None, resets_at: float | None) -> PlanWindow:
    if resets_at is not None and not 0 <= resets_at < END_OF_TIME:
        resets_at = None
    return PlanWindow(status and status[:MAX_TEXT], utilization, resets_at)
