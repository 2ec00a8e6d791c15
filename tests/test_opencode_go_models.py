"""The packaged table tells what each model of OpenCode Go takes."""

import pytest

from ocp_trio.claude.models import Catalogue
from ocp_trio.opencode_go.models import MODELS, GoModel, find, resolve, served

ANTHROPIC = {"minimax-m2.5", "minimax-m2.7", "minimax-m3", "qwen3.7-max", "qwen3.7-plus", "qwen3.6-plus"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_a_model_is_served_under_its_name_with_the_prefix_and_without(model: GoModel) -> None:
    name = f"opencode-go/{model.id}"

    assert resolve(name) == resolve(model.id) == name
    assert find(name) is find(model.id) is model


@pytest.mark.parametrize("name", ["gpt-4o", "opencode-go/", "opencode-go/claude-opus-5-5", "kimi", "KIMI-K2.6", ""])
def test_no_other_name_is(name: str) -> None:
    assert resolve(name) is None
    assert find(name) is None


def test_no_model_has_the_name_of_a_claude_model() -> None:
    assert [model.id for model in MODELS if Catalogue().resolve(model.id)] == []


def test_a_client_sees_windows_and_both_names() -> None:
    kimi = next(model for model in served() if model.id == "opencode-go/kimi-k3")

    assert (kimi.context_window, kimi.max_output, kimi.aliases) == (1_048_576, 131_072, ("kimi-k3",))


def test_six_models_take_anthropics_flavour() -> None:
    assert {model.id for model in MODELS if model.flavour == "anthropic"} == ANTHROPIC
    assert len(MODELS) == len({model.id for model in MODELS}) == 20


def test_no_answer_is_longer_than_its_window() -> None:
    assert [model.id for model in MODELS if not 0 < model.max_output <= model.context_window] == []
