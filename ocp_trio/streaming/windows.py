"""Reckon how long an upstream may still be silent: arithmetic on times, without a clock of its own."""

from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple, TypeAlias

from ocp_trio.errors import StallFacts

__all__ = ["FINISH_GRACE", "UNLIMITED", "Sighting", "StallLimits", "StallWindows"]

FINISH_GRACE = 2.0
"""Seconds after an answer's finish in which what belongs to it (usage, the end of the stream) may still come."""

Phase: TypeAlias = Literal["creation", "first_event", "idle", "keepalive_only"]


@dataclass(frozen=True, slots=True)
class StallLimits:
    """How long an upstream may be silent, in seconds; 0 and `math.inf` turn a limit off."""

    first_event: float = inf
    """From the beginning to the first content: creation of the stream, headers and prompt evaluation included. A sign
    of life before that content gives at least one more idle window or, where that limit is off, first window."""
    idle: float = inf
    """Between two signs of life, whatever their kind."""
    keepalive_cap: float = inf
    """Between two parsed events while bytes that carry none keep coming; never less than ``idle``."""
    first_event_setting: str = "first_event"
    """What a verdict names as the setting that raises the first limit."""
    idle_setting: str = "idle"
    """The same for the second."""
    keepalive_cap_setting: str = "keepalive_cap"
    """The same for the third."""

    @property
    def any(self) -> bool:
        """Whether there is any limit."""
        return min(self.first_event, self.idle, self.keepalive_cap) < inf

    def __post_init__(self) -> None:
        """Raise ValueError for what is no time span."""
        for name in ("first_event", "idle", "keepalive_cap"):
            seconds = getattr(self, name)
            if not seconds >= 0:
                raise ValueError(f"{name}={seconds!r}: must be 0 or more seconds")
            if seconds == 0:
                object.__setattr__(self, name, inf)


UNLIMITED = StallLimits()
"""No limit at all."""


class Sighting(NamedTuple):
    """What the guard has to know of an event: nothing here decides whether it counts as life. It does."""

    kind: str
    content: bool = False
    """Ends the first window: something of the answer itself, not a boundary."""
    visible: bool = False
    """A client sees it."""
    terminal: bool = False
    """Nothing of importance follows."""
    finish: bool = False
    """Says how the answer ends: only what belongs to it (usage, the end of the stream) follows, within 2 seconds."""
    inside_tool_call: bool = False
    """After it a tool call is half-sent; a verdict says so."""
    suspends: bool = False
    """Upstream is silent by nature after it (a local tool runs): the clocks stop until the next event."""


class Window(NamedTuple):
    """A silence that ends at ``at``, and why."""

    at: float
    phase: Phase
    limit: float
    setting: str


class StallWindows:
    """The windows of one upstream. Times are those of a clock that stands still while nobody waits for it.

    Args:
        limits: Their lengths.
        now: When the first one begins.
    """

    def __init__(self, limits: StallLimits, now: float) -> None:
        self.created = False
        self.finished_at = inf
        self._limits = limits
        self._began = now
        self._life_at: float | None = None
        self._event_at = self._cap_from = now
        self._eventless = False
        self._content = self._visible = self._inside_tool_call = False
        self._last_event: str | None = None
        self._events = self._bytes = 0

    def saw_bytes(self, count: int, now: float) -> None:
        """Note bytes, whatever they mean."""
        if not self._eventless and now >= self._cap().at:
            # Bytes that end a long silence, where silence is not limited: life, which ends no stream.
            self._cap_from = now
        self.created = self._eventless = True
        self._bytes += count
        self._life_at = now

    def saw_event(self, event: Sighting, count: int, now: float) -> None:
        """Note a parsed event, the last of ``count``."""
        self.created = True
        self._eventless = False
        self._events += count
        self._life_at = self._event_at = self._cap_from = now
        self._last_event = event.kind
        self._content = self._content or event.content
        self._visible = self._visible or event.visible
        self._inside_tool_call = event.inside_tool_call
        if event.finish:
            self.finished_at = min(self.finished_at, now)

    def end(self) -> float:
        """Return when the silence has been too long, or the wait for the rest of a finished answer."""
        return self._window().at if self.finished_at == inf else self.finished_at + FINISH_GRACE

    def _window(self) -> Window:
        limits = self._limits
        phase: Phase = "first_event" if self.created else "creation"
        first = Window(self._began + limits.first_event, phase, limits.first_event, limits.first_event_setting)
        if self._life_at is None:
            return first
        silence = self._silence(self._life_at)
        if self._eventless:
            silence = min(silence, self._cap(), key=lambda window: window.at)
        return silence if self._content or first.at < silence.at else first

    def _silence(self, since: float) -> Window:
        """Return the window that a sign of life opens."""
        limits = self._limits
        if limits.idle == inf and not self._content:
            # Without it, one boundary before the first content would turn the first window off.
            return Window(since + limits.first_event, "first_event", limits.first_event, limits.first_event_setting)
        return Window(since + limits.idle, "idle", limits.idle, limits.idle_setting)

    def _cap(self) -> Window:
        """Return how far bytes can open it: to no less than a silence without them may take."""
        limit, setting = self._limits.keepalive_cap, self._limits.keepalive_cap_setting
        silence = self._silence(self._event_at)
        if limit < silence.limit < inf:
            limit, setting = silence.limit, silence.setting
        return Window(self._cap_from + limit, "keepalive_only", limit, setting)

    def facts(self, now: float) -> StallFacts:
        """Return what a verdict rests on."""
        window = self._window()
        return StallFacts(
            phase=window.phase,
            limit=window.limit,
            since_last_byte=now - (self._began if self._life_at is None else self._life_at),
            since_last_event=now - self._event_at,
            last_event=self._last_event,
            events=self._events,
            bytes=self._bytes,
            visible_output=self._visible,
            setting=window.setting,
            inside_tool_call=self._inside_tool_call,
        )
