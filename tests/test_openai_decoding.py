"""JSON becomes a typed value, or one error that says what is wrong and where."""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.decoding import MAX_NESTING, check_nesting, decode


class Item(msgspec.Struct):
    name: str


class Thing(msgspec.Struct):
    count: int | None = None
    items: list[Item] = []


things = msgspec.json.Decoder(Thing)
texts = msgspec.json.Decoder(str)
anything = msgspec.json.Decoder()


def refusal(data: bytes) -> tuple[str, str | None, str]:
    with pytest.raises(InvalidRequestError) as caught:
        decode(data, things)
    return caught.value.code, caught.value.param, str(caught.value)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_wrong_type_is_named_with_its_place() -> None:
    assert refusal(b'{"count":"5"}') == ("invalid_type", "count", "count: expected `int | null`, got `str`")
    assert refusal(b'{"items":[{"name":"a"},{"name":7}]}') == (
        "invalid_type",
        "items[1].name",
        "items[1].name: expected `str`, got `int`",
    )


def test_a_missing_field_is_named_with_its_place() -> None:
    assert refusal(b'{"items":[{}]}') == (
        "missing_required_parameter",
        "items[0].name",
        "missing required parameter: items[0].name",
    )


@pytest.mark.parametrize("data", [b"[]", b'"x"', b"null", b"5"])
def test_what_is_no_object_is_of_the_wrong_type(data: bytes) -> None:
    assert refusal(data)[:2] == ("invalid_type", None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"<a/>",
        b"{} x",
        b'{"x":"\x00\\ud83d"}',
        b"{'count':1}",
        b'{"count":NaN}',
        b'{"count":Infinity}',
        b'{"items":[{"name":"\xff"}]}',
    ],
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    assert refusal(data)[:2] == ("invalid_json", None)


@pytest.mark.parametrize("data", [b"[" * 50_000, b'{"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"])
def test_json_nested_too_deeply_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="too deeply"):
        decode(data, anything)


def test_a_complaint_that_quotes_the_caller_stays_short() -> None:
    values = msgspec.json.Decoder(Item | None)

    with pytest.raises(InvalidRequestError) as caught:
        decode(b'{"name":{"' + b"x" * 100_000 + b'":1}}', values)

    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (rb"a\ud83db", "a\ufffdb"),
        (rb"\ude00", "\ufffd"),
        (rb"\uD83D", "\ufffd"),
        (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"\ud83d \ude00", "\ufffd \ufffd"),
        (rb"\ud83d\ude00 \udead", "😀 \ufffd"),
        (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
        (rb"\\\ud83d", "\\\ufffd"),
        (rb"\"\ud83d\n", '"\ufffd\n'),
    ],
)
def test_a_lone_surrogate_becomes_a_replacement_character(escaped: bytes, text: str) -> None:
    assert decode(b'"' + escaped + b'"', texts) == text


@given(st.text(st.characters()))
def test_any_text_with_any_surrogates_is_read_as_python_reads_it(text: str) -> None:
    joined = json.loads(json.dumps(text))
    expected = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in joined)

    assert decode(json.dumps(text).encode(), texts) == expected


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(InvalidRequestError):
        decode(data, anything)


def test_a_value_may_be_nested_up_to_a_limit() -> None:
    check_nesting(nested(MAX_NESTING), "schema")
    check_nesting({"a": nested(MAX_NESTING - 1), "b": 5}, "schema")

    with pytest.raises(InvalidRequestError) as caught:
        check_nesting({"a": nested(MAX_NESTING)}, "schema")

    assert caught.value.param == "schema"
