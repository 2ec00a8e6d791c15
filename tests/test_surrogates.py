"""Surrogate pairs that were split are joined, and what cannot be encoded is replaced."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.surrogates import SurrogateJoiner, scrub

HIGH, LOW, FACE, UNKNOWN = "\ud83d", "\ude00", "\N{GRINNING FACE}", "\N{REPLACEMENT CHARACTER}"

pieces = st.text(st.one_of(st.sampled_from([HIGH, LOW, "a", "\ufeff", FACE]), st.characters(exclude_categories=[])))


def join(*texts: str) -> list[str]:
    joiner = SurrogateJoiner()
    return [*map(joiner.join, texts), joiner.flush()]


def test_a_split_pair_becomes_one_character_with_its_second_half() -> None:
    assert join(f"a{HIGH}", f"{LOW}b") == ["a", f"{FACE}b", ""]


def test_a_first_half_waits_over_empty_pieces() -> None:
    assert join(HIGH, "", LOW) == ["", "", FACE, ""]


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        ([HIGH, "a"], ["", f"{UNKNOWN}a", ""]),
        (["a", LOW], ["a", UNKNOWN, ""]),
        ([HIGH, HIGH, LOW], ["", UNKNOWN, FACE, ""]),
        ([HIGH], ["", UNKNOWN]),
        ([f"{LOW}{HIGH}"], [UNKNOWN, UNKNOWN]),
    ],
)
def test_a_half_that_stays_alone_is_replaced(texts: list[str], joined: list[str]) -> None:
    assert join(*texts) == joined


def test_a_flushed_joiner_holds_nothing() -> None:
    joiner = SurrogateJoiner()
    joiner.join(HIGH)

    assert (joiner.flush(), joiner.flush(), joiner.join(LOW)) == (UNKNOWN, "", UNKNOWN)


@given(st.lists(pieces))
def test_pieces_say_what_the_whole_says(texts: list[str]) -> None:
    assert "".join(join(*texts)) == scrub("".join(texts))


@given(pieces)
def test_scrubbed_text_keeps_all_that_can_be_encoded(text: str) -> None:
    pairs = re.sub("[\ud800-\udbff][\udc00-\udfff]", lambda pair: _character(*pair[0]), text)

    assert scrub(text) == re.sub("[\ud800-\udfff]", UNKNOWN, pairs)


def _character(high: str, low: str) -> str:
    return chr(0x10000 + ((ord(high) - 0xD800) << 10) + ord(low) - 0xDC00)
