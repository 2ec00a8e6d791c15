"""A request's body is read whole and typed, or refused with the place of what is wrong."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_bodies import FUNCTION, HONOURED, IGNORED, NAMED, TOOL, body, parse

from ocp_trio.completion import Message, Sampling, Text
from ocp_trio.errors import InvalidRequestError
from ocp_trio.openai.parameters import JsonObjectFormat, JsonSchema, JsonSchemaFormat, TextFormat
from ocp_trio.openai.requests import ChatRequest, parameter_table, parse_chat_request
from ocp_trio.openai.tools import Tool, ToolChoice

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)
parts = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "text", "text": " "},
        {"type": "refusal", "refusal": "no"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "file"},
    ]
)
call_ids = st.sampled_from(["1", "2"])
calls = st.builds(lambda call_id: {"id": call_id, "function": {"name": "f", "arguments": "{}"}}, call_ids)
contents = st.none() | st.sampled_from(["", " ", "hi"]) | st.lists(parts, max_size=2)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]), "content": contents},
    optional={"tool_calls": st.lists(calls, max_size=2), "tool_call_id": call_ids, "name": st.just("f")},
)


def test_the_smallest_request_has_defaults() -> None:
    assert parse() == ChatRequest(
        model="m",
        messages=(Message("user", (Text("hi"),)),),
        system="",
        stream=False,
        include_usage=False,
        session=None,
        stop=(),
        response_format=TextFormat(),
        reasoning_effort=None,
        max_tokens=None,
        tools=(),
        tool_choice=ToolChoice("auto"),
        parallel_tool_calls=True,
        sampling=Sampling(),
        ignored=(),
        bypass_cache=False,
    )


def test_everything_that_is_honoured_is_read() -> None:
    assert parse(**HONOURED) == ChatRequest(
        model="m",
        messages=(Message("user", (Text("hi"),)),),
        system="",
        stream=True,
        include_usage=True,
        session="s-1",
        stop=("a", "b", "c", "d"),
        response_format=JsonObjectFormat(),
        reasoning_effort="high",
        max_tokens=200,
        tools=(),
        tool_choice=ToolChoice("auto"),
        parallel_tool_calls=True,
        sampling=Sampling(),
        ignored=(),
        bypass_cache=False,
    )


def test_what_is_ignored_is_named_in_the_order_sent() -> None:
    assert parse(**IGNORED).ignored == tuple(IGNORED)


def test_the_table_says_of_each_parameter_what_becomes_of_it() -> None:
    sent = {"model": "m", "messages": [], **IGNORED, **HONOURED, "n": 2, "tool_choice": "required"}
    sent["function_call"] = {"name": "f"}
    table = parameter_table()

    assert set(table) == set(sent) - {"unknown_x"}
    for name, treatment in table.items():
        if treatment == "refused":
            with pytest.raises(InvalidRequestError, match=name):
                parse(**{name: sent[name]})
        elif name not in {"model", "messages"}:
            assert parse(**{name: sent[name]}).ignored == ((name,) if treatment in ("ignored", "passed") else ())


def test_where_tools_are_supported_the_table_says_so() -> None:
    table = parameter_table(tools_supported=True)

    assert {name for name in table if table[name] != parameter_table()[name]} == {
        *("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
    }
    assert (table["tool_choice"], table["n"]) == ("honoured", "refused")


def test_what_another_backend_can_use_is_kept() -> None:
    request = parse(**IGNORED)

    assert type(request.sampling) is Sampling
    assert request.sampling == Sampling(temperature=0.2, top_p=1, seed=7, presence_penalty=0.1, frequency_penalty=-0.1)
    assert request.tools == (Tool("get_weather", "", FUNCTION["parameters"]),) * 2  # type: ignore[arg-type] # a dict
    assert request.parallel_tool_calls is False


def test_where_tools_are_supported_they_are_not_ignored() -> None:
    request = parse_chat_request(body(tools=[TOOL], tool_choice=NAMED, user="u"), tools_supported=True)

    assert request.tool_choice == ToolChoice("required", ("get_weather",))
    assert request.ignored == ("user",)


@pytest.mark.parametrize(
    ("data", "code", "param"),
    [
        (b"{}", "missing_required_parameter", "model"),
        (b'{"model":"m"}', "missing_required_parameter", "messages"),
        (b"[]", "invalid_type", None),
        (b"null", "invalid_type", None),
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"<a/>", "invalid_json", None),
        (body(x="?").replace(b"?", b"\xff"), "invalid_json", None),
        (body().decode().encode("utf-16"), "invalid_json", None),
        (body(x=float("nan")), "invalid_json", None),
        (body(temperature=float("inf")), "invalid_json", None),
        (body(x=0).replace(b"0", b"[" * 50_000 + b"]" * 50_000), "invalid_json", None),
        (b"[" * 50_000, "invalid_type", None),
    ],
)
def test_a_body_that_is_no_request_is_refused(data: bytes, code: str, param: str | None) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_chat_request(data)

    assert (caught.value.code, caught.value.param) == (code, param)


def test_a_byte_order_mark_in_front_is_skipped() -> None:
    assert parse_chat_request(b"\xef\xbb\xbf" + body()) == parse()


def test_the_last_of_two_equal_keys_wins() -> None:
    assert parse_chat_request(b'{"model":"first","n":1,"n":null,' + body()[1:]) == parse()


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    request = parse_chat_request(rb'{"model":"m","x\ud83d":1,"messages":[{"role":"user","content":"a\ud83db"}]}')

    assert request.messages == (Message("user", (Text("a\ufffdb"),)),)
    assert request.ignored == ("x_",)


def test_usage_is_asked_for_only_of_a_stream() -> None:
    assert parse(stream_options={"include_usage": True}).include_usage is False


def test_one_stop_text_may_stand_alone() -> None:
    assert parse(stop="END").stop == ("END",)


@pytest.mark.parametrize(
    ("sent", "level"),
    [("none", "low"), ("minimal", "low"), ("low", "low"), ("medium", "medium"), ("xhigh", "xhigh"), ("max", "max")],
)
def test_an_effort_becomes_the_nearest_level_of_the_cli(sent: str, level: str) -> None:
    assert parse(reasoning_effort=sent).reasoning_effort == level


def test_a_schema_for_the_answer_is_read() -> None:
    schema = {"name": "city", "schema": {"type": "object"}, "strict": True}

    request = parse(response_format={"type": "json_schema", "json_schema": schema})

    assert request.response_format == JsonSchemaFormat(JsonSchema("city", {"type": "object"}, strict=True))


def test_a_conversation_id_names_the_session_too() -> None:
    assert parse(conversation_id="c").session == "c"
    assert parse(session_id="", conversation_id="").session is None


def test_cache_control_anywhere_is_noticed_and_its_mention_in_a_text_is_not() -> None:
    marked = [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]
    mention = 'say {"cache_control": 1}'

    assert parse(messages=[{"role": "user", "content": marked}]).bypass_cache
    assert parse(cache_control={}).bypass_cache
    assert not parse(messages=[{"role": "user", "content": mention}]).bypass_cache


def test_names_of_ignored_parameters_are_few_short_and_safe_in_a_header() -> None:
    names = {"bad\r\nname: ü": 1, "": 1, "x" * 100: 1} | {f"p{number}": 1 for number in range(100)}

    ignored = parse(**names).ignored

    assert ignored[:4] == ("bad__name___", "_", "x" * 64, "p0")
    assert len(ignored) == 32


def check_reading(data: bytes) -> None:
    """Read ``data``, and check what is promised of a request if it is one."""
    try:
        request = parse_chat_request(data)
    except InvalidRequestError:
        return
    roles = [message.role for message in request.messages]
    assert roles[-1] == "user"
    assert all(first != second for first, second in pairwise(roles))
    assert all(message.parts for message in request.messages)


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_read_or_refused(data: bytes) -> None:
    check_reading(data)


@given(
    st.dictionaries(st.sampled_from(["model", "messages", *IGNORED, *HONOURED]) | st.text(), json_values, max_size=3)
)
def test_any_value_of_any_parameter_is_read_or_refused(fields: dict[str, object]) -> None:
    check_reading(body(**fields))


@given(st.lists(messages, min_size=1, max_size=6))
@settings(max_examples=300)
def test_any_row_of_messages_becomes_turns_that_alternate_or_is_refused(row: list[dict[str, Any]]) -> None:
    check_reading(body(messages=row))
