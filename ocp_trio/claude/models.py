"""The models that the CLI serves, as far as they are known; one that only looks like one of them is passed on."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from ocp_trio.completion import Model

__all__ = ["MODELS", "Catalogue"]

MODELS: tuple[Model, ...] = (
    Model("claude-opus-5-5", 1_000_000, 128_000, ("opus", "default")),
    Model("claude-fable-5-2", 1_000_000, 128_000, ("fable",)),
    Model("claude-sonnet-5-5", 1_000_000, 128_000, ("sonnet",)),
    Model("claude-haiku-5-5", 200_000, 128_000, ("haiku",)),
    Model("claude-sonnet-4-6", 1_000_000, 128_000),
    Model("claude-sonnet-4-5", 200_000, 64_000),
    Model("claude-haiku-4-5", 200_000, 64_000),
)
"""Ids and aliases as the ``initialize`` reply of CLI 2.1.332 lists them, and their predecessors.

The longest output is what that CLI asks the API for at most.
"""

_LOOKS_RIGHT = re.compile(r"claude-[A-Za-z0-9.-]+(\[1m\])?", re.ASCII)
"""A suffix asks the CLI for the longer context window."""


class Catalogue:
    """The models on offer: those of the table, and what the installed CLI lists beyond them.

    Attributes:
        models: All that are known.
    """

    def __init__(self) -> None:
        self.models = MODELS
        self._ids = {name: model.id for model in MODELS for name in (model.id, *model.aliases)}

    def resolve(self, name: str) -> str | None:
        """Return the id for a model's name or alias; None if it cannot be a Claude model."""
        if name in self._ids:
            return self._ids[name]
        return name if len(name) <= 100 and _LOOKS_RIGHT.fullmatch(name) else None

    def learn(self, listed: Iterable[tuple[str, str]]) -> None:
        """Take over what a CLI lists: the alias and the id of each model, of whichever version it is."""
        new = {alias: model_id for alias, model_id in listed if alias and _LOOKS_RIGHT.fullmatch(model_id)}
        if new.items() <= self._ids.items():
            return
        self._ids |= {model_id: model_id for model_id in new.values()} | new
        known = {model.id: model for model in self.models}
        ids = dict.fromkeys([*known, *new.values()])
        self.models = tuple(self._described(known.get(model_id, Model(model_id, 0, 0))) for model_id in ids)

    def _described(self, model: Model) -> Model:
        aliases = tuple(alias for alias, model_id in self._ids.items() if model_id == model.id != alias)
        return replace(model, aliases=aliases)
