"""The official client library runs its tool loop through the server, streaming and not."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from fake_program import install
from fake_script import client_call, client_results, prompt, success, text
from server_process import LIMIT, Server, shared_server

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = client_call("get_weather", city="Rome")
ASK = prompt(text("Let me see."), CALL, CALL, client_results(), text("Sunny."), success())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = install(tmp_path_factory.mktemp("claude"))
    with shared_server(program, CLAUDE_WARM_CONVERSATIONS="2", CLAUDE_HEARTBEAT_INTERVAL="100") as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    http = openai.DefaultHttpxClient(trust_env=False)
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=LIMIT, http_client=http
    ) as client:
        yield client


def run_tools(message: Any) -> list[Any]:
    """Return the messages that an agent adds: the model's own, and a result for each of its calls."""
    assert [call.function.name for call in message.tool_calls] == ["get_weather"] * 2
    assert [call.function.arguments for call in message.tool_calls] == ['{"city": "Rome"}'] * 2
    results = [{"role": "tool", "tool_call_id": call.id, "content": "21 C"} for call in message.tool_calls]
    return [message.model_dump(exclude_none=True), *results]


def test_the_tool_loop_of_the_plain_client_works(client: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": ASK}]
    asked = client.chat.completions.create(model="sonnet", messages=messages, tools=[TOOL])
    assert (asked.choices[0].finish_reason, asked.choices[0].message.content) == ("tool_calls", "Let me see.")

    messages += run_tools(asked.choices[0].message)
    answered = client.chat.completions.create(model="sonnet", messages=messages, tools=[TOOL])

    # Only the child that was held has the script: a fresh one answers "ok".
    assert (answered.choices[0].finish_reason, answered.choices[0].message.content) == ("stop", "Sunny.")


def test_the_tool_loop_of_the_accumulating_helper_works(client: openai.OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": ASK}]
    with client.chat.completions.stream(model="sonnet", messages=messages, tools=[TOOL]) as stream:
        asked = stream.get_final_completion()
    assert asked.choices[0].finish_reason == "tool_calls"

    messages += run_tools(asked.choices[0].message)
    with client.chat.completions.stream(model="sonnet", messages=messages, tools=[TOOL]) as stream:
        answered = stream.get_final_completion()

    assert answered.choices[0].message.content == "Sunny."


def test_a_call_streams_as_openai_streams_it(client: openai.OpenAI) -> None:
    script = prompt(client_call("get_weather"), client_results(), success())
    stream = client.chat.completions.create(
        model="sonnet", messages=[{"role": "user", "content": script}], tools=[TOOL], stream=True
    )

    choices = [chunk.choices[0] for chunk in stream]

    [first, *rest] = [call for choice in choices for call in choice.delta.tool_calls or []]
    assert (first.index, first.type, first.function and first.function.name) == (0, "function", "get_weather")
    assert first.id
    assert first.function
    assert first.function.arguments == ""
    assert [(call.id, call.function and call.function.arguments) for call in rest] == [(None, "{}")]
    assert [choice.finish_reason for choice in choices][-1] == "tool_calls"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 5}}}]}, "tools[0]"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
    ],
    ids=["no schema", "an unknown tool", "no tool"],
)
def test_what_cannot_be_offered_or_called_is_refused(client: openai.OpenAI, fields: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="sonnet", messages=[{"role": "user", "content": "hi"}], **fields)

    assert (caught.value.param or "").startswith(param)
