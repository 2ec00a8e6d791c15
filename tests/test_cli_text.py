"""What others have written is shown harmless; figures are short."""

import pytest

from ocp_trio.cli.screen import cell
from ocp_trio.cli.text import clean, clock, count, span


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zoë 渐 😀", "Zoë 渐 😀"),
        ("[red]a[/red]", "[red]a[/red]"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\rb\nc\x07", "a\\rb\\nc\\x07"),
        ("a\x9b31m", "a\\x9b31m"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("a\u2028b", "a\\u2028b"),
        ("a\ud83d", "a\\ud83d"),
    ],
)
def test_nothing_acts_on_the_terminal_and_everything_can_be_seen(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert cell(text).plain == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3 * 3600 + 5 * 60, "3 h 5 min"), (50 * 3600, "2 d 2 h")],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_a_count_has_its_thousands_marked() -> None:
    assert [count(each) for each in (0, 1234567, 0.5)] == ["0", "1,234,567", "0.50"]


def test_what_is_no_time_stays_as_it_is_but_harmless() -> None:
    assert clock("soon\x1b") == "soon\\x1b"
