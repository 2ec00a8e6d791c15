"""When to start the next child ahead of its request: soon, but ever more rarely while that fails."""

import logging

__all__ = ["Starts"]

REPLACE_AFTER = 0.5
"""Seconds until a child that was taken is replaced: its start must not compete with the request that took it."""
LONGEST_PAUSE = 60.0
"""Seconds between two starts when they keep failing."""

logger = logging.getLogger("ocp_trio.claude")


class Starts:
    """How the starts of a backend's children go; each change is logged once."""

    def __init__(self) -> None:
        self._failing = False

    def pause_after(self, pause: float, *, failed: bool) -> float:
        """Return the seconds to wait before the next start, after one that was preceded by ``pause``."""
        if failed != self._failing:
            self._failing = failed
            if failed:
                hint = "children started ahead end at once: try `claude -p hi`"
                logger.warning("warm_starts_fail", extra={"hint": hint})
            else:
                logger.info("warm_starts_recovered")
        return min(max(2 * pause, 1.0), LONGEST_PAUSE) if failed else REPLACE_AFTER
