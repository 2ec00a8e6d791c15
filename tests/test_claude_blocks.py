"""An aggregate adds what the deltas of its block have not said, and no more."""

from ocp_trio.claude.blocks import Aggregate, MessageBlocks


def test_an_aggregate_of_a_streamed_block_adds_nothing() -> None:
    blocks = MessageBlocks()
    streamed = blocks.begin(0, "text")

    assert [streamed.add("Hel"), streamed.add("lo")] == ["Hel", "lo"]
    assert blocks.repeat("text", "Hello") == Aggregate("", streamed=True)


def test_an_aggregate_adds_what_its_deltas_left_out() -> None:
    blocks = MessageBlocks()
    blocks.begin(0, "text").add("Hel")

    assert blocks.repeat("text", "Hello") == Aggregate("lo", streamed=True)


def test_an_aggregate_of_a_block_that_was_not_streamed_is_all_new() -> None:
    assert MessageBlocks().repeat("text", "Hello") == Aggregate("Hello", streamed=False)


def test_aggregates_belong_to_the_streamed_blocks_of_their_kind_in_order() -> None:
    blocks = MessageBlocks()
    for index, (kind, said) in enumerate([("text", "o"), ("thinking", "h"), ("text", "t")]):
        blocks.begin(index, kind).add(said)

    told = [blocks.repeat(*each).new for each in (("text", "one"), ("text", "two"), ("thinking", "hmm"))]

    assert told == ["ne", "wo", "mm"]


def test_two_equal_blocks_are_both_said() -> None:
    blocks = MessageBlocks()
    blocks.begin(0, "text").add("ha")
    blocks.begin(1, "text")

    assert [blocks.repeat("text", "ha").new, blocks.repeat("text", "ha").new] == ["", "ha"]


def test_the_same_aggregate_again_adds_nothing() -> None:
    blocks = MessageBlocks()

    assert [blocks.repeat("text", "ha").new, blocks.repeat("text", "ha").new] == ["ha", ""]


def test_a_split_character_counts_once() -> None:
    blocks = MessageBlocks()
    streamed = blocks.begin(0, "text")

    assert [streamed.add("\ud83d"), streamed.add("\ude00!")] == ["", "\N{GRINNING FACE}!"]
    assert blocks.repeat("text", "\N{GRINNING FACE}!?").new == "?"


def test_a_half_that_is_held_back_comes_with_the_aggregate_and_not_again() -> None:
    blocks = MessageBlocks()
    streamed = blocks.begin(0, "text")
    streamed.add("a\ud83d")

    assert blocks.repeat("text", "a\ud83d").new == "\N{REPLACEMENT CHARACTER}"
    assert streamed.flush() == ""
