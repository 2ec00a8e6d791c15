"""The models that the CLI serves, as far as they are known; one that only looks like one of them is passed on."""

import re

from ocp_trio.completion import Model

__all__ = ["MODELS", "resolve"]

MODELS = (
    Model("claude-opus-5-5", 1_000_000, 128_000, ("opus", "default")),
    Model("claude-fable-5-2", 1_000_000, 128_000, ("fable",)),
    Model("claude-sonnet-5-5", 1_000_000, 64_000, ("sonnet",)),
    Model("claude-haiku-5-5", 200_000, 64_000, ("haiku",)),
    Model("claude-sonnet-4-6", 1_000_000, 64_000),
    Model("claude-sonnet-4-5", 200_000, 64_000),
    Model("claude-haiku-4-5", 200_000, 64_000),
)
"""Ids and aliases as the ``initialize`` reply of CLI 2.1.332 lists them, and their predecessors."""

_LOOKS_RIGHT = re.compile(r"claude-[A-Za-z0-9.-]+(\[1m\])?", re.ASCII)
"""A suffix asks the CLI for the longer context window."""
_BY_NAME = {name: model.id for model in MODELS for name in (model.id, *model.aliases)}


def resolve(name: str) -> str | None:
    """Return the id for a model's name or alias; None if it cannot be a Claude model."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    return name if len(name) <= 100 and _LOOKS_RIGHT.fullmatch(name) else None
