"""An answer of a given form is one JSON value: read whole, never cut out of something else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.completion import CompletionRequest, JsonFormat, Message, Text
from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.parameters import JsonObjectFormat, JsonSchema, JsonSchemaFormat, TextFormat
from ocp_trio.openai.structured import NotJsonError, ask_again, json_format, read_format, read_json, refusal, steer

REQUEST = CompletionRequest(model="m", messages=(Message("user", (Text("hi"),)),))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ('{"a":1}', '{"a":1}'),
        (' \n{"a": 1}\t\n', '{"a": 1}'),
        ('\ufeff{"a":1}', '{"a":1}'),
        ('```json\n{"a":1}\n```', '{"a":1}'),
        ('```\n{"a":1}\n```', '{"a":1}'),
        ('```JSON \r\n{"a":1}\r\n```\n', '{"a":1}'),
        ('````json\n{"a":"```"}\n````', '{"a":"```"}'),
        ('```{"a":1}```', '{"a":1}'),
        ('```json\n{\n  "a": "```x```"\n}\n```', '{\n  "a": "```x```"\n}'),
        ("[1, 2]", "[1, 2]"),
        ('"text"', '"text"'),
        ("12345678901234567890.10", "12345678901234567890.10"),
    ],
)
def test_one_value_is_taken_as_it_was_written_out_of_a_fence_at_most(text: str, inner: str) -> None:
    assert read_json(text) == (inner, json.loads(inner))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        (" \n ", "it is empty"),
        ("```json\n```", "it is empty"),
        ("I cannot help with that.", "it is not JSON alone"),
        ('Here it is: {"a":1}', "it is not JSON alone"),
        ('Perhaps:\n```json\n{"a":1}\n```', "it is not JSON alone"),
        ('```json\n{"a":1}\n```\nPlease check it.', "it is not JSON alone"),
        ('```json\n{"a":1}\n```\n```json\n{"a":2}\n```', "something follows the JSON value"),
        ('{"a":1}\nPlease check it.', "something follows the JSON value"),
        ('{"a":1} {"a":2}', "something follows the JSON value"),
        ('{"a":1}\n{"a":1}', "something follows the JSON value"),
        ('{"a":1', "it is not JSON alone"),
        ("{'a':1}", "it is not JSON alone"),
        ('{"a":1,}', "it is not JSON alone"),
        ('{"a":NaN}', "it is not JSON alone"),
        ('{"a":1e999}', "it is not JSON alone"),
        ('{"a":"\\ud83d"}', "it is not JSON alone"),
        ('{"a":1} // done', "something follows the JSON value"),
        ("```", "it is not JSON alone"),
        ("[" * 100_000, "it is not JSON alone"),
        ("[" * 200 + "]" * 200, "it is not JSON alone (the answer: nested deeper than 100 levels"),
    ],
)
def test_anything_else_is_told_what_is_wrong_with_it(text: str, problem: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        read_json(text)

    assert str(caught.value).startswith(problem)


@given(json_values)
def test_every_value_survives_a_fence(value: object) -> None:
    text = json.dumps(value)

    assert read_json(f"```json\n{text}\n```")[0] == text


@given(st.text('`{}[]"a1:, \n'))
def test_whatever_is_taken_is_json(text: str) -> None:
    try:
        inner, _ = read_json(text)
    except NotJsonError:
        return
    json.loads(inner)


def test_a_response_format_is_one_of_three() -> None:
    schema = JsonSchema("city", {"type": "object"}, strict=True, description="A town")

    assert json_format(TextFormat()) is None
    assert json_format(JsonObjectFormat()) == JsonFormat()
    assert json_format(JsonSchemaFormat(schema)) == JsonFormat(
        name="city", schema={"type": "object"}, strict=True, description="A town"
    )


def test_a_json_object_is_asked_for_in_the_system_text() -> None:
    form = read_format(JsonFormat())

    assert (form.schema, form.cheap) == ({"type": "object"}, True)
    assert steer(REQUEST, form).system.startswith("Your whole answer has to be one JSON object and nothing else")


def test_a_schema_is_shown_behind_the_callers_own_system_text() -> None:
    form = read_format(JsonFormat(name="city", description="A town", schema={"properties": {"é": {}}}))

    system = steer(CompletionRequest(model="m", messages=REQUEST.messages, system="Be brief."), form).system

    assert system.startswith("Be brief.\n\nYour whole answer has to be one JSON value")
    assert system.endswith('(city: A town):\n{"properties":{"é":{}}}')


@pytest.mark.parametrize(
    ("schema", "cheap"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}}, False),
        ({"allOf": [{"unevaluatedProperties": False}]}, False),
        ({"pattern": "a"}, False),
        ({"description": "x" * 20_000}, False),
    ],
)
def test_only_a_small_schema_without_anything_that_multiplies_is_cheap(schema: dict[str, object], cheap: bool) -> None:
    assert read_format(JsonFormat(schema=schema)).cheap is cheap


def test_a_huge_schema_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read_format(JsonFormat(schema={"description": "x" * 300_000}))

    assert (caught.value.code, caught.value.param) == ("unsupported_value", "response_format.json_schema.schema")


def test_the_model_is_shown_its_answer_and_what_is_wrong_with_it() -> None:
    request = ask_again(REQUEST, "No.", "it is not JSON alone")

    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
    assert request.messages[1].parts == (Text("No."),)
    assert "it is not JSON alone" in str(request.messages[2].parts[0])


def test_an_empty_answer_becomes_no_turn() -> None:
    request = ask_again(REQUEST, " ", "it is empty")

    assert [message.role for message in request.messages] == ["user"]
    assert request.messages[0].parts[0] == Text("hi")
    assert "it is empty" in str(request.messages[0].parts[1])


def test_a_refusal_says_why_and_quotes_a_bounded_part_of_the_answer() -> None:
    assert refusal(3, "No.", "it is not JSON alone") == (
        "No usable JSON in 3 attempts: it is not JSON alone. The last answer was: No."
    )
    assert len(refusal(1, "x" * 5000, "p")) < 1100
