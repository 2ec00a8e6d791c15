"""Tokens are those that the CLI reports, or else the sum of what the messages report."""

from typing import Any

import pytest

from ocp_trio.claude.lines import ApiUsage
from ocp_trio.claude.tokens import TokenCount
from ocp_trio.completion import Usage


def test_what_the_cli_reports_counts() -> None:
    count = TokenCount()
    count.begin_message(ApiUsage(1, 1, 1, 1))

    assert count.total(ApiUsage(3, 200, 1000, 5)) == Usage(input=3, output=5, cache_read=1000, cache_write=200)


def test_messages_are_summed_where_it_reports_nothing() -> None:
    count = TokenCount()
    count.begin_message(ApiUsage(1, 2, 3, 1))
    count.update_output(ApiUsage(output_tokens=40))
    count.begin_message(ApiUsage(10, 20, 30, 1))

    assert count.total(None) == Usage(input=11, output=41, cache_read=33, cache_write=22)


def test_the_sum_so_far_can_be_read_at_any_time() -> None:
    count = TokenCount()
    count.begin_message(ApiUsage(1, 2, 3, 1))
    assert count.so_far() == Usage(input=1, output=1, cache_read=3, cache_write=2)

    count.update_output(ApiUsage(output_tokens=40))
    assert count.so_far() == count.so_far() == count.total(None)


def test_the_zeros_of_an_interrupted_turn_do_not_count() -> None:
    count = TokenCount()
    count.begin_message(ApiUsage(7, 0, 0, 2))

    assert count.total(ApiUsage()) == Usage(input=7, output=2)


def test_a_message_without_usage_counts_nothing() -> None:
    count = TokenCount()
    count.begin_message(None)
    count.update_output(None)

    assert count.total(None) == Usage()


@pytest.mark.parametrize(
    ("details", "reasoning"), [({"thinking_tokens": 9}, 9), ({}, 0), ({"thinking_tokens": "9"}, 0)]
)
def test_reasoning_is_counted_where_it_is_told(details: dict[str, Any], reasoning: int) -> None:
    assert TokenCount().total(ApiUsage(1, 0, 0, 20, details)).reasoning == reasoning
