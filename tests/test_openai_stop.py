"""A text ends before the first stop sequence, wherever deltas cut it."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocp_trio.openai.stop import StopFilter

texts = st.text("ab", max_size=12)
stop_sequences = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4)


def cut(text: str, stops: list[str]) -> tuple[str, bool]:
    """Say the text character by character until it ends with a stop sequence, as a model would."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))], True
    return text, False


def filtered(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    stop = StopFilter(stops)
    said = "".join([stop.feed(piece) for piece in pieces])
    return said + stop.flush(), stop.hit


@given(texts, stop_sequences)
@settings(max_examples=100)
def test_every_way_to_cut_a_text_in_three_gives_the_same(text: str, stops: list[str]) -> None:
    for one, other in combinations(range(len(text) + 1), 2):
        assert filtered([text[:one], text[one:other], text[other:]], stops) == cut(text, stops)


@given(texts, stop_sequences)
def test_single_characters_give_the_same(text: str, stops: list[str]) -> None:
    assert filtered(list(text), stops) == cut(text, stops)


@pytest.mark.parametrize(
    ("pieces", "stops", "said"),
    [
        (["Hello END world"], ["END"], ["Hello "]),
        (["Hello E", "N", "D world"], ["END"], ["Hello ", "", ""]),
        (["Hello E", "NTER"], ["END"], ["Hello ", "ENTER"]),
        (["a\n", "\nb"], ["\n\n"], ["a", ""]),
        (["x", "y"], ["END", "xyz"], ["", ""]),
        (["END"], ["END"], [""]),
        (["abc"], ["c", "abcd", "bc"], ["a"]),
        (["plain"], ["END"], ["plain"]),
        (["", "a", ""], ["END"], ["", "a", ""]),
        (["aaab"], ["aab"], ["a"]),
        (["😀", "x"], ["😀x"], ["", ""]),
    ],
)
def test_only_what_may_begin_a_stop_sequence_is_held_back(pieces: list[str], stops: list[str], said: list[str]) -> None:
    stop = StopFilter(stops)

    assert [stop.feed(piece) for piece in pieces] == said


def test_what_was_held_back_is_said_at_the_end() -> None:
    stop = StopFilter(["END"])

    assert (stop.feed("the EN"), stop.flush(), stop.flush()) == ("the ", "EN", "")


def test_after_a_hit_nothing_is_said() -> None:
    stop = StopFilter(["END"])

    assert (stop.feed("aENDb"), stop.feed("c"), stop.flush(), stop.hit) == ("a", "", "", True)
