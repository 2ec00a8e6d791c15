"""What was said is never said again, never contradicted, and never lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.claude import answer
from ocp_trio.claude.answer import SEPARATOR, AnswerText
from ocp_trio.errors import UpstreamError


def spoken(message: AnswerText, *texts: str, index: int = 0) -> str:
    message.begin_block(index)
    return "".join(map(message.say, texts))


def test_text_is_said_as_it_comes() -> None:
    message = AnswerText()

    assert [message.say("Hel"), message.say("lo")] == ["Hel", "lo"]


def test_a_blank_line_stands_between_messages() -> None:
    message = AnswerText()
    spoken(message, "one")
    message.settle()

    assert [message.say("t"), message.say("wo")] == [f"{SEPARATOR}t", "wo"]


def test_no_blank_line_comes_of_messages_without_text() -> None:
    message = AnswerText()
    message.settle()
    assert spoken(message, "one") == "one"
    message.settle()
    message.settle()

    assert spoken(message, "", "two") == f"{SEPARATOR}two"


def test_nothing_was_said_before_the_first_character() -> None:
    message = AnswerText()
    message.say("")
    before = message.said_anything
    message.say("a")

    assert (before, message.said_anything) == (False, True)


def test_a_repetition_says_only_what_is_new() -> None:
    message = AnswerText()
    spoken(message, "one tw")
    message.abandon(0)

    assert [message.say("one"), message.say(" two"), message.say(" three")] == ["", "o", " three"]
    message.settle()


def test_a_message_may_break_off_again_and_again() -> None:
    message = AnswerText()
    said = spoken(message, "abc")
    for attempt in ("", "ab", "abcd", "a"):
        message.abandon(0)
        said += spoken(message, attempt)
    message.abandon(0)
    said += spoken(message, "abcde")
    message.settle()

    assert said == "abcde"


def test_finished_blocks_are_not_repeated() -> None:
    message = AnswerText()
    spoken(message, "one ", index=0)
    spoken(message, "tw", index=1)
    message.abandon(1)

    assert spoken(message, "two") == "o"
    message.settle()


def test_a_block_that_finished_only_in_the_second_attempt_is_not_repeated_either() -> None:
    message = AnswerText()
    spoken(message, "abcd")
    message.abandon(0)
    assert spoken(message, "ab", index=0) == ""
    assert spoken(message, "c", index=1) == ""
    message.abandon(1)

    assert spoken(message, "cde") == "e"
    message.settle()


def test_a_message_that_breaks_off_between_blocks_goes_on_without_a_blank_line() -> None:
    message = AnswerText()
    spoken(message, "one")
    message.abandon(1)

    assert spoken(message, " two") == " two"


def test_a_different_repetition_is_an_error() -> None:
    message = AnswerText()
    spoken(message, "one two")
    message.abandon(0)
    message.say("one ")

    with pytest.raises(UpstreamError, match="a different answer"):
        message.say("three")


def test_a_shorter_repetition_is_an_error() -> None:
    message = AnswerText()
    spoken(message, "one two")
    message.abandon(0)
    message.say("one")

    with pytest.raises(UpstreamError, match="a shorter answer"):
        message.settle()


def test_what_was_not_said_may_be_replaced() -> None:
    message = AnswerText()
    message.begin_block(0)
    message.abandon(0)

    assert spoken(message, "anything") == "anything"
    message.settle()


def test_a_message_too_long_to_compare_cannot_be_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "KEPT", 10)
    message = AnswerText()
    spoken(message, "x" * 11)

    with pytest.raises(UpstreamError, match="too long"):
        message.abandon(0)


def test_a_long_message_of_which_nothing_is_lost_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "KEPT", 10)
    message = AnswerText()
    spoken(message, "x" * 11)
    message.abandon(1)

    assert spoken(message, "y") == "y"


@given(st.text(), st.lists(st.integers(0, 100)), st.data())
def test_broken_attempts_change_nothing(whole: str, lengths: list[int], data: st.DataObject) -> None:
    message = AnswerText()
    said = ""
    for length in lengths:
        said += spoken(message, *_cut(whole[:length], data))
        message.abandon(0)
    said += spoken(message, *_cut(whole, data))
    message.settle()

    assert said == whole


def _cut(whole: str, data: st.DataObject) -> tuple[str, str]:
    place = data.draw(st.integers(0, len(whole)))
    return whole[:place], whole[place:]
