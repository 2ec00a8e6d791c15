"""The models that OpenCode Go serves, and what each one takes."""

from typing import Literal, NamedTuple, TypeAlias

from ocp_trio.completion import Model, Sampling

__all__ = ["MODELS", "PREFIX", "Flavour", "GoModel", "find", "resolve", "served"]

PREFIX = "opencode-go/"
"""What the models' names begin with here."""

Flavour: TypeAlias = Literal["openai", "anthropic"]

SAMPLING: dict[Flavour, tuple[str, ...]] = {
    "openai": Sampling.__struct_fields__,
    "anthropic": ("temperature", "top_p"),
}
"""What a request of each flavour has a place for."""

HIGH_OR_MAX = ("high", "max")
THREE = ("low", "medium", "high")


class GoModel(NamedTuple):
    """A model under the provider's own id; its window and longest answer are in tokens."""

    id: str
    flavour: Flavour
    context_window: int
    max_output: int
    efforts: tuple[str, ...] = ()
    """The reasoning efforts that it takes, ascending; where there are none it reasons as it sees fit."""
    adaptive_thinking: bool = False
    """It reasons only if it is told to, and then as it sees fit."""
    reasoning_replay: Literal["never", "known", "always"] = "known"
    """Whether its earlier reasoning is sent back: DeepSeek insists on the field, Kimi refuses it."""


MODELS = (
    GoModel("deepseek-v4-pro", "openai", 1_000_000, 384_000, HIGH_OR_MAX, reasoning_replay="always"),
    GoModel("deepseek-v4-flash", "openai", 1_000_000, 384_000, HIGH_OR_MAX, reasoning_replay="always"),
    GoModel("glm-5", "openai", 202_752, 32_768),
    GoModel("glm-5.1", "openai", 202_752, 32_768),
    GoModel("glm-5.2", "openai", 1_000_000, 131_072, HIGH_OR_MAX),
    GoModel("kimi-k2.5", "openai", 262_144, 65_536, reasoning_replay="never"),
    GoModel("kimi-k2.6", "openai", 262_144, 65_536, reasoning_replay="never"),
    GoModel("kimi-k2.7-code", "openai", 262_144, 262_144, reasoning_replay="never"),
    GoModel("kimi-k3", "openai", 1_048_576, 131_072, ("low", "high", "max"), reasoning_replay="never"),
    GoModel("mimo-v2.5", "openai", 1_000_000, 128_000, THREE),
    GoModel("mimo-v2.5-pro", "openai", 1_048_576, 128_000, THREE),
    GoModel("qwen3.5-plus", "openai", 262_144, 65_536),
    GoModel("grok-4.5", "openai", 500_000, 128_000, THREE),
    GoModel("hy3", "openai", 262_144, 131_072, ("low", "high")),
    GoModel("minimax-m2.5", "anthropic", 204_800, 65_536),
    GoModel("minimax-m2.7", "anthropic", 204_800, 131_072),
    GoModel("minimax-m3", "anthropic", 204_800, 131_072, adaptive_thinking=True),
    GoModel("qwen3.7-max", "anthropic", 1_000_000, 65_536),
    GoModel("qwen3.7-plus", "anthropic", 1_000_000, 65_536),
    GoModel("qwen3.6-plus", "anthropic", 1_000_000, 65_536),
)
"""As the provider served them in late 2026."""

_BY_ID = {model.id: model for model in MODELS}


def served() -> tuple[Model, ...]:
    """Return the models as clients see them: the prefixed name is the id, the bare one an alias."""
    return tuple(
        Model(PREFIX + model.id, model.context_window, model.max_output, (model.id,), SAMPLING[model.flavour])
        for model in MODELS
    )


def resolve(name: str) -> str | None:
    """Return the id for a model's name, with the prefix or without; None if it is not known."""
    bare = name.removeprefix(PREFIX)
    return PREFIX + bare if bare in _BY_ID else None


def find(model_id: str) -> GoModel | None:
    """Return what is known of a model, by its name with the prefix or without."""
    return _BY_ID.get(model_id.removeprefix(PREFIX))
