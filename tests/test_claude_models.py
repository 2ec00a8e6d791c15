"""A model's name leads to its id; one that only looks right is passed on; what a CLI lists is served."""

import pytest

from ocp_trio.claude.models import MODELS, Catalogue
from ocp_trio.completion import Model

LISTED = [(alias, model.id) for model in MODELS for alias in model.aliases]


def test_every_id_and_alias_leads_to_its_id() -> None:
    catalogue = Catalogue()

    for model in MODELS:
        assert {catalogue.resolve(name) for name in (model.id, *model.aliases)} == {model.id}


def test_no_name_is_given_twice() -> None:
    names = [name for model in MODELS for name in (model.id, *model.aliases)]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "name", ["claude-opus-9", "claude-haiku-4-5-20251001", "claude-3.5-x", "claude-sonnet-4-5[1m]"]
)
def test_a_model_of_the_future_is_passed_on(name: str) -> None:
    assert Catalogue().resolve(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-4o", "demo", "", "claude", "claude-", "Opus", "anthropic/claude-opus-5-5"),
        *("claude-x y", "claude-\u00e9", "claude-x\n", "claude-x[2m]", "claude-" + "x" * 200),
    ],
)
def test_anything_else_is_not_served(name: str) -> None:
    assert Catalogue().resolve(name) is None


# What a CLI lists


def test_a_list_that_says_what_is_known_changes_nothing() -> None:
    catalogue = Catalogue()

    catalogue.learn(LISTED)

    assert catalogue.models == MODELS


def test_a_new_model_takes_over_its_alias_and_is_listed_without_figures() -> None:
    catalogue = Catalogue()

    catalogue.learn([("opus", "claude-opus-6"), ("best", "claude-opus-6")])

    assert (catalogue.resolve("opus"), catalogue.resolve("best")) == ("claude-opus-6", "claude-opus-6")
    assert catalogue.models[0] == Model("claude-opus-5-5", 1_000_000, 128_000, ("default",))
    assert catalogue.models[-1] == Model("claude-opus-6", 0, 0, ("opus", "best"))
    assert catalogue.models[1:-1] == MODELS[1:]


@pytest.mark.parametrize("listed", [("", "claude-opus-6"), ("gpt", "gpt-4o"), ("x", "")])
def test_what_is_no_claude_model_is_not_learnt(listed: tuple[str, str]) -> None:
    catalogue = Catalogue()

    catalogue.learn([listed])

    assert catalogue.models == MODELS
