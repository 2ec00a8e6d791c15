"""Turn JSON bytes into typed values, and whatever is wrong with them into an `InvalidRequestError`."""

import re
from typing import TypeVar

import msgspec

from ocp_trio.errors import InvalidRequestError

__all__ = ["MAX_NESTING", "check_nesting", "decode", "refusal"]

T = TypeVar("T")

MAX_NESTING = 100
"""Levels accepted in a JSON value of free form: beyond any real schema, far below Python's recursion limit."""

_MAX_PROBLEM = 200
"""Characters of a complaint: it may quote what the caller sent."""

_LONE_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"  # a first half and no second one
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD])[c-fC-F][0-9a-fA-F]{2})"  # a second half and no first one
)
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_WRONG_TYPE = re.compile(r"Expected `[^`]*`(, got `[^`]*`)?")


def decode(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode ``data``; the escape of a lone surrogate half counts as that of U+FFFD.

    Raises:
        InvalidRequestError: ``data`` is not JSON, or not of the decoder's type; ``param`` names the culprit.
    """
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise refusal(error) from error
    except RecursionError as error:
        raise InvalidRequestError("the JSON text is nested too deeply", code="invalid_json") from error
    except msgspec.DecodeError as error:
        repaired = _replace_lone_surrogates(data)
        if repaired == data:
            problem = f"not valid JSON: {_lower(str(error))}"
            raise InvalidRequestError(problem, code="invalid_json") from error
    return decode(repaired, decoder)


def check_nesting(value: object, param: str) -> None:
    """Refuse ``value`` if it is nested beyond `MAX_NESTING`: it could not be encoded again wherever it is needed.

    Raises:
        InvalidRequestError: it is.
    """
    level = [value]
    for _ in range(MAX_NESTING):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise InvalidRequestError(
        f"{param}: nested deeper than {MAX_NESTING} levels", code="unsupported_value", param=param
    )


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _replace_lone_surrogates(data: bytes) -> bytes:
    # Once escaped backslashes are out of the way, every backslash begins an escape. JSON holds no NUL as it is.
    if b"\0" in data:
        return data
    masked = data.replace(rb"\\", b"\0")
    return _LONE_SURROGATE.sub(rb"\\ufffd", masked).replace(b"\0", rb"\\")


def refusal(error: msgspec.ValidationError) -> InvalidRequestError:
    """Translate a complaint of msgspec 0.23, such as "Expected `str`, got `int` - at `$.messages[2].role`"."""
    complaint = str(error)
    problem, found, path = complaint.rpartition(" - at `$")
    if not found:
        problem, path = complaint, ""
    param = path.rstrip("`").lstrip(".")
    missing = _MISSING.fullmatch(problem)
    if missing:
        param = f"{param}.{missing[1]}".lstrip(".")
        return InvalidRequestError(
            f"missing required parameter: {param}", code="missing_required_parameter", param=param
        )
    code = "invalid_type" if _WRONG_TYPE.fullmatch(problem) else "unsupported_value"
    return InvalidRequestError(f"{param or 'the body'}: {_lower(problem)}", code=code, param=param or None)


def _lower(problem: str) -> str:
    return problem[:1].lower() + problem[1:_MAX_PROBLEM]
