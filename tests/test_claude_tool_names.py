"""Names of tools go to the model and come back as they were."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.claude.tool_names import ToolNames, safe_id


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("get_weather", "mcp__client__get_weather"),
        ("Bash", "mcp__client__Bash"),
        ("mcp__files__read", "mcp__client__mcp__files__read"),
        ("a.b c", "mcp__client__a_b_c"),
        ("日本", "mcp__client____"),
        ("n" * 200, "mcp__client__" + "n" * 100),
    ],
)
def test_a_name_has_a_prefix_and_only_what_the_api_takes(name: str, shown: str) -> None:
    names = ToolNames([name])

    assert names.shown(name) == shown
    assert names.callers(shown) == name


def test_names_that_would_be_the_same_are_told_apart_and_a_good_one_stays() -> None:
    names = ToolNames(["a.b", "a_b", "a b"])

    assert [names.shown(name) for name in ("a_b", "a.b", "a b")] == [
        "mcp__client__a_b",
        "mcp__client__a_b_2",
        "mcp__client__a_b_3",
    ]


def test_a_name_of_the_history_that_is_not_on_offer_is_like_those_which_are() -> None:
    assert ToolNames(["look"]).shown("old.tool") == "mcp__client__old_tool"
    assert ToolNames([]).shown("old.tool") == "old_tool"


def test_another_name_is_none_of_the_callers() -> None:
    names = ToolNames(["look"])

    assert [names.callers(name) for name in ("Bash", "look", "mcp__client__other", "mcp__files__look")] == [None] * 4


@given(st.lists(st.text(max_size=130), max_size=8))
def test_every_name_comes_back(offered: list[str]) -> None:
    names = ToolNames(offered)

    assert [names.callers(names.shown(name)) for name in offered] == offered
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", names.shown(name)) for name in offered)


def test_an_id_has_only_what_the_api_takes() -> None:
    assert (safe_id("toolu_1"), safe_id("functions.get:0")) == ("toolu_1", "functions_get_0")
