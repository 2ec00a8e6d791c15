"""Bodies of chat completion requests that have every field once, and what to put there instead."""

import copy
from collections.abc import Iterator
from typing import Any, TypeAlias

__all__ = ["SAMPLES", "VALUES", "Path", "changed", "fields", "param"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices on the way to a value."""

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf"
    "FcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JSON_SCHEMA = {"name": "n", "schema": SCHEMA, "strict": True, "description": "d"}
NAMED = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES = [
    {"role": "system", "content": "s"},
    {"role": "developer", "content": [{"type": "text", "text": "d"}]},
    {"role": "user", "content": [{"type": "text", "text": "u"}, {"type": "image_url", "image_url": {"url": PIXEL}}]},
    {
        "role": "assistant",
        "reasoning_content": "hm",
        "reasoning": "hm",
        "content": [{"type": "refusal", "refusal": "r"}],
        "tool_calls": [CALL],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "t"},
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": [{"type": "text", "text": "f"}]},
    {"role": "user", "content": "u"},
]
USER = [{"role": "user", "content": "u"}]
SAMPLES: dict[str, Any] = {
    "messages": {"messages": MESSAGES},
    "plain": {
        "messages": USER,
        "stream": True,
        "stream_options": {"include_usage": True},
        "n": 1,
        "stop": ["a"],
        "response_format": {
            "type": "json_schema",
            "json_schema": JSON_SCHEMA,
        },
        "reasoning_effort": "low",
        "max_tokens": 5,
        "max_completion_tokens": 5,
        "session_id": "s",
        "conversation_id": "c",
    },
    "unread": {
        "messages": USER,
        "temperature": 1,
        "top_p": 0.5,
        "seed": 5,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "logit_bias": {"5": 1},
        "logprobs": True,
        "top_logprobs": 1,
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "p",
        "store": True,
        "metadata": {"a": "b"},
        "service_tier": "auto",
        "verbosity": "low",
        "modalities": ["text"],
        "prediction": {"a": 1},
        "audio": {"a": 1},
        "web_search_options": {"a": 1},
    },
    "tools": {
        "messages": USER,
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": NAMED,
        "parallel_tool_calls": True,
    },
    "allowed tools": {
        "messages": USER,
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
        },
    },
    "functions": {
        "messages": USER,
        "functions": [FUNCTION],
        "function_call": {"name": "f"},
        "response_format": {"type": "text"},
    },
}
VALUES: list[Any] = [
    *(None, True, 0, -1, 2**31, -(2**63) - 1, 1.5, "", "x" * 1001),
    *([], [None], ["x"], {}, {"type": "x"}),
]
"""Something of each type, and what is at or beyond a bound."""
LEFT_OUT = object()


def fields(value: Any, path: Path = ()) -> Iterator[Path]:
    """Return the way to a value and to everything in it."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from fields(item, (*path, key))


def changed(body: Any, path: Path, value: Any) -> Any:
    """Return a copy of a body with another value at one place, or none if it is `LEFT_OUT`."""
    if not path:
        return value
    body = copy.deepcopy(body)
    place = body
    for key in path[:-1]:
        place = place[key]
    if value is LEFT_OUT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return body


def param(path: Path) -> str:
    """Return how an error names a place."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")
