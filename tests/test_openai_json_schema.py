"""An answer is checked against its schema, whatever either of them holds, in bounded time."""

import json
import subprocess
import sys

import pytest

from ocp_trio.openai import json_schema
from ocp_trio.openai.json_schema import SchemaError, check_schema, find_problem

ITEM = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": False}
LIST = {"type": "object", "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}}}
DRAFT = "http://json-schema.org/draft-%s/schema#"


def doubling(levels: int) -> json_schema.Schema:
    """Return a schema whose check takes 2 ** levels steps."""
    definitions = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**definitions, f"a{levels}": {"type": "string"}}, "$ref": "#/$defs/a0"}


def grammar() -> json_schema.Schema:
    """Return a schema of nested operations, where telling what is wrong takes far longer than finding it."""
    branches = [{"properties": {"op": {"const": op}, "c": {"$ref": "#/$defs/n"}}, "required": ["op"]} for op in "ab"]
    return {"$defs": {"n": {"anyOf": branches}}, "$ref": "#/$defs/n"}


def nested(levels: int) -> dict[str, object]:
    value: dict[str, object] = {"op": "x"}
    for _ in range(levels):
        value = {"op": "a", "c": value}
    return value


def run_program(**request: object) -> tuple[int, str]:
    command = [sys.executable, "-P", json_schema.__file__]
    done = subprocess.run(command, input=json.dumps(request).encode(), capture_output=True, check=False)
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(
    ("schema", "answer", "problem"),
    [
        ({"type": "object"}, {"a": 1}, None),
        ({"type": "object"}, [1], 'at $: [1] is not of type "object"'),
        ({}, None, None),
        ({"type": "integer"}, 1.0, None),
        ({"type": "integer", "maximum": 10**30}, 10**25, None),
        ({"required": ["a", "b"]}, {}, 'at $: "a" is a required property; at $: "b" is a required property'),
        ({**LIST, "$defs": {"item": ITEM}}, {"items": [{"id": 1}]}, None),
        ({**LIST, "$defs": {"item": ITEM}}, {"items": [{"id": "x"}]}, 'at $.items[0].id: "x" is not of type "integer"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, None),
        ({"pattern": "^(?=.*\\d)[a-z\\d]+$"}, "abc1", None),
        ({"format": "email"}, "anything", None),
        ({"$schema": DRAFT % "04", "type": "integer"}, 1, None),
        ({"$schema": DRAFT % "07", "definitions": {"a": {"type": "integer"}}, "$ref": "#/definitions/a"}, 1, None),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, None),
    ],
)
def test_an_answer_is_valid_or_it_is_told_what_is_wrong(
    schema: json_schema.Schema, answer: object, problem: str | None
) -> None:
    assert find_problem(schema, answer) == problem


def test_a_complaint_is_short_whatever_the_answer_is() -> None:
    problem = find_problem({"items": {"type": "integer"}}, ["x" * 100_000] * 100)

    assert problem
    assert len(problem) < 1000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": 5},
        {"minLength": -1},
        {"pattern": "("},
        {"properties": []},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "file:///etc/hostname"},
        {"$schema": "http://example.com/unknown"},
        {"$schema": 5},
    ],
)
def test_what_is_no_schema_or_leads_out_of_itself_is_refused(schema: json_schema.Schema) -> None:
    with pytest.raises(SchemaError):
        check_schema(schema)


def test_a_refusal_says_where() -> None:
    with pytest.raises(SchemaError, match=r"^at \$\.properties\.a\.minLength: -1 is less than"):
        check_schema({"properties": {"a": {"minLength": -1}}})


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"additionalProperties": {"$ref": "#"}}])
def test_a_schema_may_refer_to_itself(schema: json_schema.Schema) -> None:
    assert find_problem(schema, {"a": {"a": {}}}) is None


def test_a_pattern_that_takes_for_ever_does_not_match() -> None:
    assert find_problem({"pattern": "^(?=(a+)+$)b"}, "a" * 50 + "!")


def test_the_program_says_the_same() -> None:
    assert run_program(schema={"type": "object"}) == (0, "")
    assert run_program(schema={"type": "object"}, answer={}) == (0, "")
    assert run_program(schema={"type": "object"}, answer=[1]) == (0, 'answer at $: [1] is not of type "object"')
    assert run_program(schema={"$ref": "#/nowhere"}) == (0, "schema at $: Pointer '/nowhere' does not exist")


def test_the_program_ends_when_a_check_would_not() -> None:
    status, said = run_program(schema=doubling(60), answer="x")

    assert status < 0
    assert said == ""


def test_the_program_tells_a_mismatch_even_if_it_has_no_time_to_describe_it() -> None:
    status, said = run_program(schema=grammar(), answer=nested(30))

    assert status < 0
    assert said == "answer "
