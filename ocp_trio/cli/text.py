"""Make text of others harmless to a terminal, and figures short."""

import unicodedata
from datetime import datetime

__all__ = ["clean", "clock", "count", "span"]

_FORMAT = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of characters that a terminal acts upon or that nobody can see: controls, overrides of the direction."""


def clean(text: str) -> str:
    r"""Return a text in which nothing moves the cursor, changes colours or hides: an escape is shown as ``\x1b``."""
    return "".join(
        each.encode("unicode_escape").decode() if unicodedata.category(each) in _FORMAT else each for each in text
    )


def clock(when: str) -> str:
    """Return an ISO time in the local zone, to the second; what is none stays as it is."""
    try:
        return datetime.fromisoformat(when).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return clean(when)


def span(seconds: float) -> str:
    """Return a length of time in its two largest units: ``3 h 5 min``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def count(number: float) -> str:
    """Return a number with thousands marked off; a whole one without decimals."""
    return f"{number:,.0f}" if number == round(number) else f"{number:,.2f}"
