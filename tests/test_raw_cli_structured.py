"""The pinned CLI's own structured output, against a mock of its API: why `ocp_trio.openai.structured` does without."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from mock_anthropic import MockAnthropic, open_mock_anthropic
from raw_cli import Line, RawCli, control, open_raw_cli, require_cli, user
from sse_script import Answer, Arguments, Text, ToolUse

pytestmark = pytest.mark.real_cli

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


def calls(arguments: str, *, stop_reason: str = "tool_use") -> Answer:
    return Answer(ToolUse("toolu_1", "StructuredOutput"), Arguments(arguments), stop_reason=stop_reason)


@pytest.fixture
async def mock(tmp_path: Path) -> AsyncIterator[MockAnthropic]:
    with trio.fail_after(60):
        async with open_mock_anthropic() as mock:
            yield mock


@pytest.fixture
async def cli(mock: MockAnthropic, tmp_path: Path) -> AsyncIterator[RawCli]:
    async with open_raw_cli(require_cli(), mock.url, tmp_path) as cli:
        yield cli


async def ask(cli: RawCli, schema: dict[str, Any]) -> Line:
    """Return the result line."""
    return (await cli.ask(control("i", "initialize", jsonSchema=schema), user("hi")))[-1]


async def test_initialize_takes_a_schema_and_offers_it_as_a_tool(mock: MockAnthropic, cli: RawCli) -> None:
    mock.script(calls('{"answer":"42"}'))

    result = await ask(cli, SCHEMA)

    [tool] = [tool for tool in mock.requests[0].body["tools"] if tool["name"] == "StructuredOutput"]
    assert tool["input_schema"] == SCHEMA
    assert "tool_choice" not in mock.requests[0].body
    assert (result["structured_output"], result["result"]) == ({"answer": "42"}, '{"answer":"42"}')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"},
    ],
)
async def test_a_schema_that_it_cannot_use_is_dropped_without_a_word(
    mock: MockAnthropic, cli: RawCli, schema: dict[str, Any]
) -> None:
    mock.script(Answer(Text("anything")))

    result = await ask(cli, schema)

    assert mock.requests[0].body["tools"] == []
    assert (result["is_error"], result["result"]) == (False, "anything")


async def test_what_comes_as_text_is_asked_for_once_more_and_then_taken_as_it_is(
    mock: MockAnthropic, cli: RawCli
) -> None:
    mock.script(Answer(Text('{"answer":"42"}')))

    result = await ask(cli, SCHEMA)

    assert len(mock.requests) == 2
    assert mock.requests[1].last_user_text.startswith("[structured-output-enforce]")
    assert (result["is_error"], "structured_output" in result) == (False, False)


@pytest.mark.parametrize(
    ("answer", "rounds"),
    [(calls('{"wrong":1}'), 5), (calls('{"answer":"4', stop_reason="max_tokens"), 5)],
    ids=["wrong", "cut"],
)
async def test_a_wrong_answer_and_a_cut_one_end_as_the_same_error(
    mock: MockAnthropic, cli: RawCli, answer: Answer, rounds: int
) -> None:
    mock.script(answer)

    result = await ask(cli, SCHEMA)

    assert len(mock.requests) == rounds
    assert (result["is_error"], result["subtype"]) == (True, "error_max_structured_output_retries")


async def test_numbers_and_the_order_of_keys_are_those_of_javascript(mock: MockAnthropic, cli: RawCli) -> None:
    mock.script(calls('{"b":12345678901234567890,"2":1.0}'))

    assert (await ask(cli, {"type": "object"}))["result"] == '{"2":1,"b":12345678901234567000}'
