"""What a setting's text may be: how it is read, how it is shown, and what an operator is told of its range."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal, TypeAlias

__all__ = ["FLAG", "GRACE", "MAX_MILLISECONDS", "MILLISECONDS", "SWITCH", "TEXT", "WORDS", "Kind", "one_of", "whole"]

MAX_MILLISECONDS: Final = 2**31 - 1
"""Longest time accepted: what fits the timers of the Node proxy, whose settings these are; 24.8 days."""

Shown: TypeAlias = int | str | bool | list[str]

_DIGITS = re.compile(r"[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How one sort of value is written.

    Attributes:
        type: Of the value in JSON.
        read: Turns the text of the environment into the value; a `ValueError` says what is expected.
        show: Turns the value back into what an operator writes.
        low: The smallest number.
        high: The largest number.
        unit: Of the number, as it is written.
        choices: The texts that are accepted; empty for any.
    """

    type: Literal["integer", "boolean", "string", "array"]
    read: Callable[[str], Any]
    show: Callable[[Any], Shown]
    low: int | None = None
    high: int | None = None
    unit: str | None = None
    choices: tuple[str, ...] = ()


def _number(text: str, low: int, high: int) -> int:
    if not _DIGITS.fullmatch(text) or len(text) > 18:
        raise ValueError("a whole number is expected")
    if not low <= int(text) <= high:
        raise ValueError(f"a whole number from {low} to {high} is expected")
    return int(text)


def whole(low: int, high: int, unit: str | None = None) -> Kind:
    """Make the kind of whole numbers between two bounds."""
    return Kind(type="integer", read=lambda text: _number(text, low, high), show=round, low=low, high=high, unit=unit)


def one_of(*choices: str) -> Kind:
    """Make the kind of some texts."""

    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)} is expected")
        return text

    return Kind(type="string", read=read, show=str, choices=choices)


def _milliseconds(text: str) -> float:
    return _number(text, 0, MAX_MILLISECONDS) / 1000


def _flag(text: str) -> bool:
    if text not in {"0", "1"}:
        raise ValueError("0 or 1 is expected")
    return text == "1"


def _switch(text: str) -> bool:
    on, off = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
    if text.lower() not in on | off:
        raise ValueError("0 or 1 is expected")
    return text.lower() in on


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


MILLISECONDS: Final = Kind(
    type="integer",
    read=lambda text: _milliseconds(text) or inf,
    show=lambda seconds: 0 if seconds == inf else round(seconds * 1000),
    low=0,
    high=MAX_MILLISECONDS,
    unit="ms",
)
"""A limit, held in seconds; 0 turns it off."""
GRACE: Final = Kind(
    type="integer",
    read=_milliseconds,
    show=lambda seconds: round(seconds * 1000),
    low=0,
    high=MAX_MILLISECONDS,
    unit="ms",
)
"""A time, held in seconds; 0 is no time at all."""
FLAG: Final = Kind(type="boolean", read=_flag, show=bool)
SWITCH: Final = Kind(type="boolean", read=_switch, show=bool)
"""A flag of the Node proxy's, which took more than 0 and 1."""
TEXT: Final = Kind(type="string", read=str, show=str)
WORDS: Final = Kind(type="array", read=_words, show=list)
