"""Write what each client's configuration needs; every text of the server's is quoted as its format wants it."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ocp_trio.cli.models import Model
from ocp_trio.cli.text import clean

__all__ = ["CLIENTS", "Connection", "Snippet"]

PROVIDER: Final = "ocp-trio"
"""What clients call the server."""
LINE: Final = 130
"""Characters of a line of JSON."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """What there is to know of a server."""

    base_url: str
    """With ``/v1``."""
    needs_key: bool
    key: str | None
    """None where it is not to be shown, or none is needed."""
    model: Model
    """What clients are to use first."""
    models: tuple[Model, ...]

    @property
    def shown_key(self) -> str:
        """The key, or what stands for it; clients want some text even where the server does not."""
        return self.key or ("YOUR_KEY" if self.needs_key else "none")


class Snippet(NamedTuple):
    """A piece of configuration, and where it belongs."""

    file: str
    text: str


def _shell(connection: Connection) -> Snippet:
    lines = [
        f"export OPENAI_BASE_URL={shlex.quote(connection.base_url)}",
        f"export OPENAI_API_KEY={shlex.quote(connection.shown_key)}",
    ]
    return Snippet("~/.bashrc or ~/.zshrc", "\n".join(lines))


def _fish(connection: Connection) -> Snippet:
    lines = [
        f"set -gx OPENAI_BASE_URL {_fish_quote(connection.base_url)}",
        f"set -gx OPENAI_API_KEY {_fish_quote(connection.shown_key)}",
    ]
    return Snippet("~/.config/fish/config.fish", "\n".join(lines))


def _fish_quote(text: str) -> str:
    r"""Quote a text for fish, where ``\\`` and ``\'`` are escapes inside quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _cline(connection: Connection) -> Snippet:
    rows = [
        "API Provider   OpenAI Compatible",
        f"Base URL       {connection.base_url}",
        f"API Key        {connection.shown_key}",
        f"Model ID       {connection.model.id}",
    ]
    return Snippet("VS Code: Cline, Settings, API Configuration", "\n".join(map(clean, rows)))


def _continue(connection: Connection) -> Snippet:
    shared = {"apiBase": connection.base_url, "apiKey": connection.shown_key}
    # JSON is YAML's flow style.
    models = [
        {"name": model.id, "provider": "openai", "model": model.id, **shared, "roles": ["chat", "edit", "apply"]}
        for model in connection.models
    ]
    lines = ["name: ocp-trio", "version: 0.0.1", "schema: v1", "models:", *(f"  - {_yaml(model)}" for model in models)]
    return Snippet("~/.continue/config.yaml", "\n".join(lines))


def _yaml(value: object) -> str:
    """Write a value in YAML's flow style: JSON but for surrogate pairs, which YAML does not join."""
    return clean(json.dumps(value, ensure_ascii=False))


def _aider(connection: Connection) -> Snippet:
    lines = [
        f"openai-api-base: {_yaml(connection.base_url)}",
        f"openai-api-key: {_yaml(connection.shown_key)}",
        f"model: {_yaml(f'openai/{connection.model.id}')}",
    ]
    return Snippet("~/.aider.conf.yml", "\n".join(lines))


def _opencode(connection: Connection) -> Snippet:
    models = {model.id: {"name": model.id, **_limits(model)} for model in connection.models}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": PROVIDER,
        "options": {"baseURL": connection.base_url, "apiKey": "{env:OPENAI_API_KEY}"},
        "models": models,
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "provider": {PROVIDER: provider},
        "model": f"{PROVIDER}/{connection.model.id}",
    }
    return Snippet("~/.config/opencode/opencode.json", _json(config))


def _limits(model: Model) -> dict[str, Any]:
    """Return OpenCode's limits of a model; it wants both or none."""
    if not (model.context_window and model.max_output_tokens):
        return {}
    return {"limit": {"context": model.context_window, "output": model.max_output_tokens}}


def _json(value: Any, indent: str = "") -> str:  # noqa: ANN401 (whatever JSON can say)
    """Write JSON with what fits on a line on one, so that a list of models stays readable."""
    flat = json.dumps(value)
    if len(indent) + len(flat) <= LINE or not isinstance(value, dict | list):
        return flat
    deeper = indent + "  "
    if isinstance(value, dict):
        opening, items, closing = "{", [f"{json.dumps(key)}: {_json(each, deeper)}" for key, each in value.items()], "}"
    else:
        opening, items, closing = "[", [_json(each, deeper) for each in value], "]"
    return opening + ",".join(f"\n{deeper}{item}" for item in items) + f"\n{indent}{closing}"


def _openclaw(connection: Connection) -> Snippet:
    models = [
        {
            "id": model.id,
            "name": model.id,
            **({"contextWindow": model.context_window} if model.context_window else {}),
            **({"maxTokens": model.max_output_tokens} if model.max_output_tokens else {}),
        }
        for model in connection.models
    ]
    provider = {
        "baseUrl": connection.base_url,
        "apiKey": "${OPENAI_API_KEY}",
        "api": "openai-completions",
        "models": models,
    }
    config = {
        "models": {"mode": "merge", "providers": {PROVIDER: provider}},
        "agents": {"defaults": {"model": {"primary": f"{PROVIDER}/{connection.model.id}"}}},
    }
    return Snippet("~/.openclaw/openclaw.json", _json(config))


CLIENTS: Final[Mapping[str, Callable[[Connection], Snippet]]] = {
    "shell": _shell,
    "fish": _fish,
    "cline": _cline,
    "continue": _continue,
    "aider": _aider,
    "opencode": _opencode,
    "openclaw": _openclaw,
}
"""The clients that are known, in the order in which they are shown."""
