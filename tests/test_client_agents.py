"""Agents of all kinds execute their tools through the server and the real CLI, round after round."""

import pytest
from client_runs import AGENTS, Client
from raw_client import Json
from real_backend import said
from real_server import open_real_server
from scripted_server import RecordedRequest
from sse_script import Answer, Arguments, Text, ToolUse

pytestmark = pytest.mark.real_cli

QUESTION = "What is the weather in Rome and Bonn?"
TOOL = "mcp__client__get_weather"
ROME = Answer(
    Text("Let me see."), ToolUse("toolu_1", TOOL), Arguments('{"city":'), Arguments('"Rome"}'), stop_reason="tool_use"
)
BONN = Answer(ToolUse("toolu_2", TOOL), Arguments('{"city":"Bonn"}'), stop_reason="tool_use")
DONE = Answer(Text("Rome 21 C, "), Text("Bonn 7 C."))


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(call_id: str, city: str) -> Json:
    return {"type": "tool_use", "id": call_id, "name": TOOL, "input": {"city": city}}


def result(call_id: str, words: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": [text(words)]}


CONVERSATION = [
    ("user", [text(QUESTION)]),
    ("assistant", [text("Let me see."), use("toolu_1", "Rome")]),
    ("user", [result("toolu_1", "21 C")]),
    ("assistant", [use("toolu_2", "Bonn")]),
    ("user", [result("toolu_2", "7 C")]),
]


def heard(request: RecordedRequest) -> list[tuple[str, list[Json]]]:
    """Return the conversation that the API was sent."""
    conversation = said(request)
    for _, blocks in conversation:
        for block in blocks:
            # A result that is no error need not say so.
            if block.get("is_error") is False:
                del block["is_error"]
    return conversation


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Client:
    client = AGENTS[request.param]
    client.require()
    return client


@pytest.mark.parametrize(("kept", "processes"), [("2", 1), ("0", 3)], ids=["in one process", "afresh each time"])
async def test_two_rounds_of_calls_reach_the_model_as_true_blocks(agent: Client, kept: str, processes: int) -> None:
    async with open_real_server(CLAUDE_WARM_CONVERSATIONS=kept) as (server, mock):
        mock.script(ROME, BONN, DONE)
        seen = await agent.run({"url": f"{server.url}/v1", "model": "claude-opus-5-5", "content": QUESTION})
        asked = [recorded for recorded in mock.requests if recorded.path.startswith("/v1/messages")]

    assert seen == {"asked": ["Rome", "Bonn"], "text": "Rome 21 C, Bonn 7 C."}
    assert [heard(recorded) for recorded in asked] == [CONVERSATION[:1], CONVERSATION[:3], CONVERSATION]
    assert len({recorded.body["metadata"]["user_id"] for recorded in asked}) == processes
