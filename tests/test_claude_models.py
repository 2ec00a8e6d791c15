"""A model's name leads to its id; one that only looks right is passed on."""

import pytest

from ocp_trio.claude.models import MODELS, resolve


def test_every_id_and_alias_leads_to_its_id() -> None:
    for model in MODELS:
        assert {resolve(name) for name in (model.id, *model.aliases)} == {model.id}


def test_no_name_is_given_twice() -> None:
    names = [name for model in MODELS for name in (model.id, *model.aliases)]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "name", ["claude-opus-9", "claude-haiku-4-5-20251001", "claude-3.5-x", "claude-sonnet-4-5[1m]"]
)
def test_a_model_of_the_future_is_passed_on(name: str) -> None:
    assert resolve(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-4o", "demo", "", "claude", "claude-", "Opus", "anthropic/claude-opus-5-5"),
        *("claude-x y", "claude-\u00e9", "claude-x\n", "claude-x[2m]", "claude-" + "x" * 200),
    ],
)
def test_anything_else_is_not_served(name: str) -> None:
    assert resolve(name) is None
