"""Check JSON against a JSON Schema: in this process, or as a program whose computing time has an end.

Schemas come from callers, and references multiply: thirty lines can ask for years of work that nothing can interrupt.
As a program this imports nothing of the package, reads ``{"schema": …, "answer": …}`` and prints what is wrong.
"""

import resource
import sys
from itertools import islice
from typing import Any, Final, TypeAlias

import jsonschema_rs
import msgspec

__all__ = ["CPU_LIMIT", "Schema", "SchemaError", "check_schema", "find_problem", "is_cheap"]

Schema: TypeAlias = dict[str, Any]

CPU_LIMIT: Final = 1
"""Seconds of computing that the program may take; a schema of 5,000 properties takes 0.03."""
MEMORY_LIMIT: Final = 2**30
"""Bytes of address space of the program."""
BACKTRACK_LIMIT: Final = 100_000
"""Steps of one match of a pattern; what needs more does not match."""

_MULTIPLYING = frozenset(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Keywords with which a check can take far longer than the sizes of schema and answer suggest."""
_MAX_PROBLEMS = 3
_MAX_PROBLEM = 300
"""Characters of a complaint: it may quote the answer."""


class SchemaError(ValueError):
    """The schema is none, or refers to what it does not contain."""


def is_cheap(schema: object) -> bool:
    """Whether a check against ``schema`` takes no longer than its size and the answer's suggest."""
    if isinstance(schema, dict):
        return _MULTIPLYING.isdisjoint(schema) and all(map(is_cheap, schema.values()))
    return not isinstance(schema, list) or all(map(is_cheap, schema))


def check_schema(schema: Schema) -> None:
    """Refuse what is no JSON Schema (draft 4 to 2020-12), or refers to what it does not contain.

    Raises:
        SchemaError: it is none, or does.
    """
    _compile(schema)


def find_problem(schema: Schema, answer: object) -> str | None:
    """Say what of ``answer``, a decoded JSON value, is against ``schema``; None if nothing is.

    Raises:
        SchemaError: as `check_schema`.
    """
    validator = _compile(schema)
    return None if validator.is_valid(answer) else _describe(validator, answer)


def _compile(schema: Schema) -> jsonschema_rs.Validator:
    try:
        # Offline: a reference makes the server neither fetch a page nor read a file.
        return jsonschema_rs.validator_for(
            schema,
            offline=True,
            validate_formats=False,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
        )
    except jsonschema_rs.ValidationError as error:
        raise SchemaError(f"at {_path(error.instance_path)}: {_shorten(error.message)}") from error
    except jsonschema_rs.ReferencingError as error:
        raise SchemaError(_shorten(error.message)) from error


def _describe(validator: jsonschema_rs.Validator, answer: object) -> str:
    problems = islice(validator.iter_errors(answer), _MAX_PROBLEMS)
    return "; ".join(f"at {_path(problem.instance_path)}: {_shorten(problem.message)}" for problem in problems)


def _path(parts: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_PROBLEM else text[:_MAX_PROBLEM] + "…"


def _main() -> None:
    """Check as a program: print nothing if all is well, else ``schema `` or ``answer `` and the problem."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    request = msgspec.json.decode(sys.stdin.buffer.read())
    try:
        validator = _compile(request["schema"])
    except SchemaError as error:
        sys.stdout.write(f"schema {error}")
        return
    if "answer" in request and not validator.is_valid(request["answer"]):
        # Said first: to describe a mismatch can take far longer than to find it.
        sys.stdout.write("answer ")
        sys.stdout.flush()
        sys.stdout.write(_describe(validator, request["answer"]))


if __name__ == "__main__":
    _main()
