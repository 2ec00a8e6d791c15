"""Check forms and answers against them, where need be in a process that its computing time ends."""

import subprocess
import sys

import trio

from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai import json_schema
from ocp_trio.openai.structured import SCHEMA_PARAM, AnswerFormat

__all__ = ["check_format", "find_problem"]


async def check_format(wanted: AnswerFormat) -> None:
    """Refuse a form that no answer could be checked against.

    Cancellation: at once.

    Raises:
        InvalidRequestError: its schema is none, or takes too long to read.
    """
    if wanted.cheap:
        try:
            json_schema.check_schema(wanted.schema)
        except json_schema.SchemaError as error:
            raise _refuse(str(error)) from error
    elif verdict := await _run_program(b'{"schema":%b}' % wanted.schema_json):
        raise _refuse(verdict.removeprefix("schema "))


async def find_problem(wanted: AnswerFormat, text: str, value: object) -> str | None:
    """Say what of an answer is not as it was wanted; None if nothing is.

    Cancellation: at once.

    Args:
        wanted: A form that has been checked.
        text: JSON.
        value: The same, decoded.

    Raises:
        InvalidRequestError: the check takes too long.
    """
    if wanted.cheap:
        return json_schema.find_problem(wanted.schema, value)
    verdict = await _run_program(b'{"schema":%b,"answer":%b}' % (wanted.schema_json, text.encode()))
    return f"it is not valid against the schema {verdict.removeprefix('answer ')}".rstrip() if verdict else None


async def _run_program(request: bytes) -> str:
    """Return what the program says; -P keeps this folder off the path that it imports from."""
    command = [sys.executable, "-P", json_schema.__file__]
    done = await trio.run_process(command, stdin=request, capture_stdout=True, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0 and not done.stdout:
        raise _refuse(f"to check against it takes more than {json_schema.CPU_LIMIT} s of computing")
    return bytes(done.stdout).decode(errors="replace")


def _refuse(problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"{SCHEMA_PARAM}: {problem}", code="unsupported_value", param=SCHEMA_PARAM)
