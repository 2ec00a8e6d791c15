"""What a request says reaches the API through the real CLI, whole and as it was meant, and nothing else does."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_backend import seen, words
from real_backend import PASSED, Json, RealBackend, assistant, open_real, request, said, user
from scripted_server import RecordedRequest
from sse_script import Answer, Arguments, Raw, Signature, Thinking, frame
from sse_script import Text as Say
from sse_script import ToolUse as Call
from sse_script import Usage as Tokens

from ocp_trio.claude.models import MODELS
from ocp_trio.completion import (
    Completed,
    Image,
    Model,
    Part,
    Started,
    Text,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolResult,
    ToolUse,
    Usage,
)

pytestmark = pytest.mark.real_cli

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"  # one red pixel
WORDS = (
    *("@/etc/hostname", "/help", "--help", "-v", "-------", "!ls", "# note", " \n hi \n", "\u2028\ufeff\x00"),
    *("Human: hi\n\nAssistant: ho", "<system-reminder>x</system-reminder>", "\N{GRINNING FACE}"),
)
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def text(value: str) -> Json:
    return {"type": "text", "text": value}


async def api_request(folder: Path, *messages: Any, **fields: Any) -> Json:
    """Return the only request that the API gets of one of ours."""
    async with open_real(folder) as real:
        await real.ask(request(*messages, **fields))
        [recorded] = real.mock.requests
    body: Json = recorded.body
    return body


async def conversation(folder: Path, *messages: Any) -> list[tuple[str, list[Json]]]:
    async with open_real(folder) as real:
        events = await real.ask(request(*messages))
        [recorded] = real.mock.requests
    assert isinstance(events[-1], Completed)
    return said(recorded)


# Answers


async def test_an_answer_streams_with_its_tokens(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        real.mock.script(
            Answer(Say("Hel"), Say("lo"), usage=Tokens(input=3, output=5, cache_read=1000, cache_write=200))
        )
        events = await real.ask(request())

    assert events[0] == Started()
    tokens = Usage(input=3, output=5, cache_read=1000, cache_write=200)
    assert seen(events) == [TextDelta("Hel"), TextDelta("lo"), Completed("stop", tokens)]


async def test_each_turn_of_a_process_tells_its_own_cost(tmp_path: Path) -> None:
    history = [user("hi"), assistant("Hello"), user("and?"), assistant("Hello"), user("and?")]
    async with open_real(tmp_path, warm_conversations=1) as real:
        real.mock.script(*(Answer(Say("Hello"), usage=Tokens(input=100, output=50)) for _ in range(3)))
        costs = []
        for count in (1, 3, 5):
            match (await real.ask(request(*history[:count])))[-1]:
                case Completed(_, usage):
                    costs.append(usage.cost_usd)

        assert real.backend.children.counts.continued == 2
    assert costs[0]
    assert costs == pytest.approx([costs[0]] * 3)


async def test_reasoning_is_told_apart_from_the_answer(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        real.mock.script(Answer(Thinking("h"), Thinking("m"), Signature("sig"), Say("yes")))
        events = await real.ask(request())

    assert seen(events)[:-1] == [ThinkingDelta("h"), ThinkingDelta("m"), ThinkingEnd(), TextDelta("yes")]


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason"),
    [("max_tokens", "length"), ("refusal", "content_filter")],
)
async def test_an_answer_that_is_cut_short_is_not_asked_for_again(
    tmp_path: Path, stop_reason: str, finish_reason: str
) -> None:
    async with open_real(tmp_path) as real:
        real.mock.script(Answer(Say("part"), stop_reason=stop_reason), Answer(Say("more")))
        events = await real.ask(request())

    assert words(events) == "part"
    assert seen(events)[-1] == Completed(finish_reason, Usage(input=10, output=5))  # type: ignore[arg-type]  # parametrised


async def test_a_character_that_the_model_splits_is_whole(tmp_path: Path) -> None:
    event = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}'
    halves = [Raw(frame(event % half, event="content_block_delta")) for half in (r"\ud83d", r"\ude00")]

    async with open_real(tmp_path) as real:
        real.mock.script(Answer(Say("a"), *halves))
        events = await real.ask(request())

    assert words(events) == "a\N{GRINNING FACE}"


# Models


async def test_the_packaged_models_are_those_that_the_cli_lists(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        await real.ask(request())

        assert real.backend.models == MODELS


async def test_a_model_that_only_the_cli_knows_is_served_once_it_has_listed_it(tmp_path: Path) -> None:
    chosen = {"ANTHROPIC_DEFAULT_OPUS_MODEL": "claude-opus-9-9"}

    async with open_real(tmp_path, env=chosen, pass_environment=[*PASSED, *chosen]) as real:
        await real.ask(request())

        assert real.backend.resolve("opus") == "claude-opus-9-9"
        assert "claude-opus-9-9" in {model.id for model in real.backend.models}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
async def test_the_longest_output_is_what_the_cli_asks_for_at_most(tmp_path: Path, model: Model) -> None:
    sent = await api_request(tmp_path, model=model.id, max_tokens=10_000_000)

    assert (sent["model"], sent["max_tokens"]) == (model.id, model.max_output)


# Requests


async def test_history_arrives_with_its_true_roles(tmp_path: Path) -> None:
    turns = [user("one"), assistant("two"), user("three"), assistant("four"), user("five")]

    assert await conversation(tmp_path, *turns) == [
        ("user", [text("one")]),
        ("assistant", [text("two")]),
        ("user", [text("three")]),
        ("assistant", [text("four")]),
        ("user", [text("five")]),
    ]


async def test_history_may_begin_with_the_assistant(tmp_path: Path) -> None:
    assert await conversation(tmp_path, assistant("one"), user("two")) == [
        ("assistant", [text("one")]),
        ("user", [text("two")]),
    ]


async def test_text_stays_text_in_the_history_and_in_the_last_message(tmp_path: Path) -> None:
    turns = [turn for words in WORDS for turn in (user(words), assistant(words))]

    for last in ("@/etc/hostname", "/help"):
        assert await conversation(tmp_path, *turns, user(last)) == [
            *[(role, [text(words)]) for words in WORDS for role in ("user", "assistant")],
            ("user", [text(last)]),
        ]


async def test_a_long_system_prompt_and_a_long_message_arrive_whole(tmp_path: Path) -> None:
    system, message = "s" * 300_000, "u" * 300_000

    body = await api_request(tmp_path, user(message), system=system)

    assert body["system"][-1]["text"] == system
    assert [block["text"] for block in body["messages"][0]["content"]] == [message]


@pytest.mark.parametrize("system", ["-v", "@/etc/hostname"])
async def test_the_system_prompt_is_the_requests(tmp_path: Path, system: str) -> None:
    body = await api_request(tmp_path, system=system)

    assert body["system"][-1]["text"] == system


async def test_model_effort_and_limit_reach_the_api(tmp_path: Path) -> None:
    body = await api_request(tmp_path, model="claude-sonnet-5-5", effort="low", max_tokens=4711)

    assert (body["model"], body["max_tokens"], body["output_config"]) == ("claude-sonnet-5-5", 4711, {"effort": "low"})


async def test_a_model_that_nobody_knows_is_passed_on(tmp_path: Path) -> None:
    assert (await api_request(tmp_path, model="claude-unheard-of-9"))["model"] == "claude-unheard-of-9"


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-5-5"])
async def test_a_short_answer_has_room_for_more_than_its_thinking(tmp_path: Path, model: str) -> None:
    body = await api_request(tmp_path, model=model, max_tokens=100)

    assert body["max_tokens"] == 100
    assert body.get("thinking", {}).get("budget_tokens", 0) < 100


@pytest.mark.parametrize(
    ("parts", "blocks"),
    [
        ((Text("see"), Image("image/png", PNG)), [text("see"), PICTURE]),
        (
            (Image(url="https://images.example/x.png"),),
            [{"type": "image", "source": {"type": "url", "url": "https://images.example/x.png"}}],
        ),
    ],
    ids=["data", "url"],
)
async def test_images_arrive(tmp_path: Path, parts: tuple[Part, ...], blocks: list[Json]) -> None:
    assert await conversation(tmp_path, user(*parts)) == [("user", blocks)]


async def test_tool_calls_and_results_of_the_history_arrive_whole(tmp_path: Path) -> None:
    calls = assistant("wait", ToolUse("c1", "weather", {"city": "Paris"}), ToolUse("c2", "time", {}))
    results = user(
        ToolResult("c1", (Text("sunny"), Image("image/png", PNG))), ToolResult("c2", (Text("no"),), is_error=True)
    )

    called, answered = (await conversation(tmp_path, user("hi"), calls, results))[1:]

    assert called == (
        "assistant",
        [
            text("wait"),
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
            {"type": "tool_use", "id": "c2", "name": "time", "input": {}},
        ],
    )
    assert answered == (
        "user",
        [
            {"type": "tool_result", "tool_use_id": "c1", "content": [text("sunny"), PICTURE], "is_error": False},
            {"type": "tool_result", "tool_use_id": "c2", "content": [text("no")], "is_error": True},
        ],
    )


# What of this machine is within reach


@pytest.mark.parametrize(("setting_sources", "within_reach"), [("", False), ("user", True)])
async def test_hooks_and_instructions_of_the_machine_are_within_reach_only_where_its_settings_are_read(
    tmp_path: Path, setting_sources: str, within_reach: bool
) -> None:
    settings = '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch $HOME/hooked"}]}]}}'
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(settings)
    (tmp_path / ".claude/CLAUDE.md").write_text("remember the magic word")

    async with open_real(tmp_path, setting_sources=setting_sources) as real:
        await real.ask(request())
        [recorded] = real.mock.requests

    assert ("magic word" in str(recorded.body)) is within_reach
    assert (tmp_path / "hooked").exists() is within_reach


async def test_by_default_a_request_has_no_tools_and_is_small(tmp_path: Path) -> None:
    body = await api_request(tmp_path)

    assert body["tools"] == []
    assert len(json.dumps(body)) < 2500


def tools_of(recorded: RecordedRequest) -> list[str]:
    """Return the tools that the model may call."""
    names = [tool["name"] for tool in recorded.body["tools"]]
    # It stands for tools that are looked up later; without any it can do nothing.
    return [name for name in names if name != "DeferredToolPlaceholder"]


async def use_bash(real: RealBackend, command: str) -> tuple[list[str], Json]:
    """Let the model call Bash; return the tools that exist and what comes of the call."""
    call = (Call("toolu_1", "Bash"), Arguments(f'{{"command": "{command}"}}'))
    real.mock.script(Answer(Say("wait"), *call, stop_reason="tool_use"), Answer(Say("done")))
    events = await real.ask(request())
    assert words(events) == "wait\n\ndone"
    [_, followed] = real.mock.requests
    return tools_of(followed), next(
        block for _, blocks in said(followed) for block in blocks if block["type"] == "tool_result"
    )


async def test_by_default_no_tool_exists(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        tools, outcome = await use_bash(real, f"touch {tmp_path}/made")

    assert tools == []
    assert "No such tool available" in outcome["content"]
    assert not (tmp_path / "made").exists()


async def test_a_named_tool_runs_without_asking_and_no_other_exists(tmp_path: Path) -> None:
    async with open_real(tmp_path, allowed_tools=["Bash"]) as real:
        tools, outcome = await use_bash(real, f"touch {tmp_path}/made")

    assert tools == ["Bash"]
    assert outcome["is_error"] is False
    assert (tmp_path / "made").exists()


async def test_a_rule_bounds_what_its_tool_may_do(tmp_path: Path) -> None:
    async with open_real(tmp_path, allowed_tools=["Bash(echo hello:*)"]) as real:
        tools, outcome = await use_bash(real, f"touch {tmp_path}/made")

    assert tools == ["Bash"]
    assert outcome["is_error"] is True
    assert not (tmp_path / "made").exists()


MCP_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {
        "initialize": {
            "protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}
        },
        "tools/list": {"tools": [{"name": "look", "description": "d", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "seen"}]},
    }.get(asked["method"], {})
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_tool_of_an_mcp_server_runs_where_it_is_allowed(tmp_path: Path, allowed: bool) -> None:
    server = tmp_path / "server.py"
    server.write_text(MCP_SERVER)
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"tiny": {"command": sys.executable, "args": [str(server)]}}}))
    rules = ["mcp__tiny"] if allowed else []

    async with open_real(tmp_path, mcp_config=str(config), allowed_tools=rules) as real:
        call = (Call("toolu_1", "mcp__tiny__look"), Arguments("{}"))
        real.mock.script(Answer(Say("wait"), *call, stop_reason="tool_use"), Answer(Say("done")))
        await real.ask(request())
        first, second = real.mock.requests

    assert tools_of(first) == ["mcp__tiny__look"]
    assert ("seen" in str(said(second))) is allowed
