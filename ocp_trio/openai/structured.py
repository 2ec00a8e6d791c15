"""Ask for an answer of a given form, and read what comes back: one JSON value, or a reason why it is none.

The CLI's own way (a schema in ``initialize``, a ``StructuredOutput`` tool) is not taken: measured on 2.1.332, it drops
a schema that it cannot use without a word, asks once more for what came as text, reports a cut answer as an error after
five rounds, and rewrites numbers.
"""

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ocp_trio.completion import CompletionRequest, JsonFormat, Message, Text
from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.decoding import check_nesting
from ocp_trio.openai.json_schema import is_cheap
from ocp_trio.openai.parameters import JsonObjectFormat, JsonSchemaFormat, ResponseFormat, TextFormat

__all__ = [
    "SCHEMA_PARAM",
    "AnswerFormat",
    "NotJsonError",
    "ask_again",
    "json_format",
    "read_format",
    "read_json",
    "refusal",
    "steer",
]

SCHEMA_PARAM: Final = "response_format.json_schema.schema"
"""Where a caller's schema stands in the request."""
MAX_SCHEMA: Final = 256 * 2**10
"""Bytes of a schema's JSON text; OpenAI takes 120,000 characters of names and values in one."""
MAX_CHEAP: Final = 16 * 2**10
"""Bytes of a schema's JSON text up to which it is checked in this process, if it is cheap."""
MAX_QUOTED: Final = 1000
"""Characters of an unusable answer that a refusal quotes."""

_ONLY_JSON = (
    "Your whole answer has to be one JSON {value} and nothing else: no text before or after it, no code fence, no "
    "comments."
)
_LANGUAGE = re.compile(r"[\w+.-]*")


class NotJsonError(ValueError):
    """A text is not one JSON value."""


class AnswerFormat(msgspec.Struct, frozen=True):
    """The form that an answer has to have.

    ``schema_json`` is the JSON text of ``schema``; ``cheap`` tells that checks against it need no process of their own.
    """

    schema: dict[str, Any]
    schema_json: bytes
    steering: str
    cheap: bool


def json_format(response_format: ResponseFormat) -> JsonFormat | None:
    """Return what ``response_format`` asks for; None if any text will do."""
    match response_format:
        case JsonObjectFormat():
            return JsonFormat()
        case JsonSchemaFormat(wanted):
            return JsonFormat(
                schema=wanted.schema, name=wanted.name, description=wanted.description, strict=wanted.strict
            )
        case TextFormat():
            return None


def read_format(wanted: JsonFormat) -> AnswerFormat:
    """Return the form that is asked for.

    Raises:
        InvalidRequestError: the schema is too large. Whether it is one at all is for `json_schema` to say.
    """
    if wanted.schema is None:
        return AnswerFormat({"type": "object"}, b'{"type":"object"}', _ONLY_JSON.format(value="object"), cheap=True)
    schema_json = msgspec.json.encode(wanted.schema)
    if len(schema_json) > MAX_SCHEMA:
        problem = f"{SCHEMA_PARAM}: over {MAX_SCHEMA} bytes"
        raise InvalidRequestError(problem, code="unsupported_value", param=SCHEMA_PARAM)
    about = f"{wanted.name}: {wanted.description}" if wanted.description else wanted.name
    steering = f"{_ONLY_JSON.format(value='value')} It has to be valid against this JSON Schema ({about}):\n"
    cheap = len(schema_json) <= MAX_CHEAP and is_cheap(wanted.schema)
    return AnswerFormat(wanted.schema, schema_json, steering + schema_json.decode(), cheap)


def read_json(text: str) -> tuple[str, object]:
    """Return the JSON text that is all there is of ``text``, a code fence round it aside, and its value.

    Raises:
        NotJsonError: there is none, or something else beside it, even a second one.
    """
    inner = _unfence(text.strip("\ufeff \t\r\n"))
    try:
        value = msgspec.json.decode(inner)
        check_nesting(value, "the answer")
    except (msgspec.DecodeError, UnicodeError, RecursionError, InvalidRequestError) as error:
        raise NotJsonError(_complaint(inner, error)) from error
    return inner, value


def _unfence(text: str) -> str:
    ticks = len(text) - len(text.lstrip("`"))
    if ticks < 3 or len(text) < 2 * ticks or not text.endswith("`" * ticks):
        return text
    inner = text[ticks:-ticks]
    first, newline, rest = inner.partition("\n")
    return (rest if newline and _LANGUAGE.fullmatch(first.strip()) else inner).strip()


def _complaint(text: str, error: Exception) -> str:
    if not text:
        return "it is empty"
    if "trailing characters" in str(error):
        return "something follows the JSON value, and there has to be exactly one"
    return f"it is not JSON alone ({str(error)[:200]})"


def steer(request: CompletionRequest, wanted: AnswerFormat) -> CompletionRequest:
    """Add to the system text what form the answer has to have."""
    return replace(request, system="\n\n".join(filter(None, (request.system, wanted.steering))))


def ask_again(request: CompletionRequest, answer: str, problem: str) -> CompletionRequest:
    """Add the unusable answer and what is wrong with it as further turns."""
    complaint = Text(
        f"This answer cannot be used: {problem}. Give all of it again, as one JSON value and nothing else."
    )
    if not answer or answer.isspace():
        # No model accepts a turn without text.
        last = request.messages[-1]
        return replace(request, messages=(*request.messages[:-1], replace(last, parts=(*last.parts, complaint))))
    turns = Message("assistant", (Text(answer),)), Message("user", (complaint,))
    return replace(request, messages=(*request.messages, *turns))


def refusal(attempts: int, answer: str, problem: str) -> str:
    """Say why there is no answer of the form that was asked for."""
    times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    quoted = answer if len(answer) <= MAX_QUOTED else answer[:MAX_QUOTED] + "…"
    last = "" if answer.isspace() or not answer else f" The last answer was: {quoted}"
    return f"No usable JSON in {times}: {problem}.{last}"
