"""A stream is cut into lines wherever its pieces happen to end, in bounded memory."""

import pytest

from ocp_trio.errors import LineTooLongError
from ocp_trio.streaming import MAX_LINE, LineDecoder

TEXT = b'{"a": 1}\n\n{"b": "\xc3\xa9"}\r\nlast'
LINES = [b'{"a": 1}', b"", b'{"b": "\xc3\xa9"}\r']


def test_lines_come_without_their_line_feed_and_the_rest_with_the_flush() -> None:
    decoder = LineDecoder()

    assert decoder.feed(TEXT) == LINES
    assert decoder.flush() == b"last"


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_lines_are_the_same_wherever_a_piece_ends(cut: int) -> None:
    decoder = LineDecoder()

    assert decoder.feed(TEXT[:cut]) + decoder.feed(TEXT[cut:]) == LINES
    assert decoder.flush() == b"last"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_lines_are_the_same_in_pieces_of_any_size(size: int) -> None:
    decoder = LineDecoder()

    fed = [line for at in range(0, len(TEXT), size) for line in decoder.feed(TEXT[at : at + size])]

    assert fed == LINES
    assert decoder.flush() == b"last"


def test_nothing_is_left_after_a_last_line_feed() -> None:
    decoder = LineDecoder()
    decoder.feed(b"a\n")

    assert decoder.flush() is None


def test_a_flush_leaves_nothing() -> None:
    decoder = LineDecoder()
    decoder.feed(b"a\nb")

    assert (decoder.flush(), decoder.flush(), decoder.pending) == (b"b", None, 0)


def test_it_says_how_much_of_an_unfinished_line_it_holds() -> None:
    decoder = LineDecoder()

    held = []
    for piece in (b"ab", b"c", b"d\nef", b"\n"):
        decoder.feed(piece)
        held.append(decoder.pending)

    assert held == [2, 3, 2, 0]


@pytest.mark.parametrize("pieces", [[b"abcd\n"], [b"ab", b"cd\n"], [b"abcd", b"\n"], [b"\nabcd\n"]])
def test_a_line_of_exactly_the_limit_is_accepted(pieces: list[bytes]) -> None:
    decoder = LineDecoder(4)

    assert [line for piece in pieces for line in decoder.feed(piece)][-1] == b"abcd"


@pytest.mark.parametrize("pieces", [[b"abcde\n"], [b"ab", b"cde\n"], [b"abcde"], [b"abcd", b"e"], [b"a\nabcde\nb\n"]])
def test_a_longer_one_is_refused_as_soon_as_it_is_longer(pieces: list[bytes]) -> None:
    decoder = LineDecoder(4)
    for piece in pieces[:-1]:
        decoder.feed(piece)

    with pytest.raises(LineTooLongError) as caught:
        decoder.feed(pieces[-1])
    assert caught.value.limit == 4


def test_a_line_may_be_32_mib_long_unless_told_otherwise() -> None:
    decoder = LineDecoder()
    piece = b"a" * 2**16
    for _ in range(MAX_LINE // len(piece)):
        decoder.feed(piece)

    assert decoder.pending == MAX_LINE == 32 * 2**20
    with pytest.raises(LineTooLongError):
        decoder.feed(b"a")
