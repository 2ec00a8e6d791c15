"""Through the real CLI a caller's tools are called by the model, and go on in the same process with their results."""

from pathlib import Path
from typing import Any

import pytest
from fake_backend import seen, words
from real_backend import Json, RealBackend, assistant, open_real, request, said, user
from sse_script import Answer, Arguments
from sse_script import Text as Say
from sse_script import ToolUse as Call
from sse_script import Usage as Tokens

from ocp_trio.completion import (
    Completed,
    CompletionRequest,
    Image,
    Message,
    Text,
    TextDelta,
    Tool,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolChoice,
    ToolResult,
    ToolUse,
    Usage,
)
from ocp_trio.errors import UpstreamError

pytestmark = pytest.mark.real_cli

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool("get_weather", "Tell the weather.", CITY)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"  # one red pixel
ROME, BONN = {"city": "Rome"}, {"city": "Bonn"}
KEEP: Json = {"warm_conversations": 2}


def call(call_id: str, name: str = "get_weather", arguments: str = '{"city":"Rome"}') -> list[Any]:
    return [Call(call_id, f"mcp__client__{name}"), *([Arguments(arguments)] if arguments else [])]


def calls(*steps: Any, usage: Tokens | None = None) -> Answer:
    return Answer(*steps, stop_reason="tool_use", usage=usage)


ONE = calls(Say("Let me see."), *call("toolu_1"), usage=Tokens(input=3, output=20))
TWO = calls(*call("toolu_1"), *call("toolu_2", arguments='{"city":"Bonn"}'))
DONE = Answer(Say("Sunny."), usage=Tokens(input=50, output=7))
CALLED = assistant("Let me see.", ToolUse("toolu_1", "get_weather", ROME))
BOTH = assistant(ToolUse("toolu_1", "get_weather", ROME), ToolUse("toolu_2", "get_weather", BONN))


def result(call_id: str = "toolu_1", *parts: Text | Image, **fields: Any) -> ToolResult:
    return ToolResult(call_id, parts or (Text("21 C"),), **fields)


def asked(*messages: Message, tools: tuple[Tool, ...] = (WEATHER,), **fields: Any) -> CompletionRequest:
    return request(user("weather?"), *messages, tools=tools, **fields)


async def loop(real: RealBackend, *answers: Answer, called: Message = CALLED, results: Message, **fields: Any) -> Any:
    """Ask, bring the results of the calls, and return the events of both answers."""
    real.mock.script(*answers)
    return await real.ask(asked(**fields)), await real.ask(asked(called, results, **fields))


def continued(real: RealBackend) -> int:
    return real.backend.children.counts.continued


def api_tools(real: RealBackend) -> list[Json]:
    return list(real.mock.requests[0].body.get("tools", []))


def tool_results(real: RealBackend, index: int = -1) -> list[Json]:
    return [
        block for _, blocks in said(real.mock.requests[index]) for block in blocks if block["type"] == "tool_result"
    ]


async def test_a_call_streams_and_goes_on_in_the_same_process_with_its_result(tmp_path: Path) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        first, second = await loop(real, ONE, DONE, results=user(result()))

        assert seen(first) == [
            TextDelta("Let me see."),
            ToolCallStart(0, "toolu_1", "get_weather"),
            ToolCallDelta(0, '{"city":"Rome"}'),
            ToolCallEnd(0),
            Completed("tool_calls", Usage(input=3, output=20)),
        ]
        assert seen(second) == [TextDelta("Sunny."), Completed("stop", Usage(input=50, output=7))]
        assert continued(real) == 1
        assert real.backend.slots.in_flight == 0
        [tool] = api_tools(real)
        assert (tool["name"], tool["description"]) == ("mcp__client__get_weather", "Tell the weather.")
        assert tool["input_schema"] == CITY
        [told] = tool_results(real)
        assert (told["tool_use_id"], told["content"]) == ("toolu_1", [{"type": "text", "text": "21 C"}])


async def test_several_calls_of_one_answer_take_their_results_in_any_order(tmp_path: Path) -> None:
    results = user(result("toolu_2", Text("two")), result("toolu_1", Text("one")))
    async with open_real(tmp_path, **KEEP) as real:
        first, second = await loop(real, TWO, DONE, called=BOTH, results=results)

        assert [event.index for event in first if isinstance(event, ToolCallEnd)] == [0, 1]
        assert words(second) == "Sunny."
        assert continued(real) == 1
        told = {block["tool_use_id"]: block["content"][0]["text"] for block in tool_results(real)}
        assert told == {"toolu_1": "one", "toolu_2": "two"}


async def test_twelve_calls_at_once_are_all_held(tmp_path: Path) -> None:
    many = calls(*(step for number in range(12) for step in call(f"toolu_{number}")))
    called = assistant(*(ToolUse(f"toolu_{number}", "get_weather", ROME) for number in range(12)))
    async with open_real(tmp_path, **KEEP) as real:
        results = user(*(result(f"toolu_{number}") for number in range(12)))
        _, second = await loop(real, many, DONE, called=called, results=results)

        assert words(second) == "Sunny."
        assert continued(real) == 1


async def test_rounds_follow_each_other_and_then_an_ordinary_turn(tmp_path: Path) -> None:
    again = assistant(ToolUse("toolu_2", "get_weather", ROME))
    history = [CALLED, user(result()), again, user(result("toolu_2")), assistant("Sunny."), user("thanks")]
    async with open_real(tmp_path, **KEEP) as real:
        real.mock.script(ONE, calls(*call("toolu_2")), DONE, Answer(Say("Bye."), usage=Tokens(input=60, output=2)))
        said_last = [seen(await real.ask(asked(*history[:count])))[-1] for count in (0, 2, 4, 6)]

        assert said_last == [
            Completed("tool_calls", Usage(input=3, output=20)),
            Completed("tool_calls", Usage(input=10, output=5)),
            Completed("stop", Usage(input=50, output=7)),
            Completed("stop", Usage(input=60, output=2)),
        ]
        assert continued(real) == 3


@pytest.mark.parametrize(
    "results",
    [
        user(result(), "and hurry"),
        user(result("toolu_1", Text("x" * 400_000))),
        user(result("toolu_1", Image(url="https://example.org/a.png"))),
    ],
    ids=["more than results", "a result that the CLI would cut", "an image by its address"],
)
async def test_what_cannot_be_continued_starts_afresh_with_true_blocks(tmp_path: Path, results: Message) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        _, second = await loop(real, ONE, DONE, results=results)

        assert words(second) == "Sunny."
        assert continued(real) == 0
        [told] = tool_results(real)
        assert told["tool_use_id"] == "toolu_1"
        use = said(real.mock.requests[-1])[1][1][1]
        assert (use["name"], use["input"]) == ("mcp__client__get_weather", ROME)


async def test_without_children_that_are_kept_every_round_starts_afresh(tmp_path: Path) -> None:
    async with open_real(tmp_path) as real:
        _, second = await loop(real, ONE, DONE, results=user(result()))

        assert words(second) == "Sunny."
        assert [len(said(recorded)) for recorded in real.mock.requests] == [1, 3]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (result("toolu_1", Text("a"), Image("image/png", PNG)), ["text", "image"]),
        (result("toolu_1", Text("x" * 200_000)), ["text"]),
    ],
    ids=["an image", "a long text"],
)
async def test_results_reach_the_model_whole(tmp_path: Path, given: ToolResult, told: list[str]) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        # Of this model the CLI would tell how many tokens are left.
        await loop(real, ONE, DONE, results=user(given), model="claude-sonnet-4-6")

        assert continued(real) == 1
        [block] = tool_results(real)
        assert [part["type"] for part in block["content"]] == told
        texts = [part.text for part in given.content if isinstance(part, Text)]
        assert [part["text"] for part in block["content"] if part["type"] == "text"] == texts


async def test_an_error_of_the_tool_is_told_as_one(tmp_path: Path) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        await loop(real, ONE, DONE, results=user(result("toolu_1", Text("boom"), is_error=True)))

        assert continued(real) == 1
        [block] = tool_results(real)
        assert (block["content"], block["is_error"]) == ("boom", True)


async def test_forty_tools_arrive_whole_and_odd_names_round_trip(tmp_path: Path) -> None:
    odd = ["a.b c", "a_b_c", "Bash", "n" * 120, "n" * 121, "mcp__x__y", "日本"]
    tools = tuple(Tool(name, f"{name} {'x' * 3000}", {}) for name in (*odd, *(f"tool_{i}" for i in range(40))))
    async with open_real(tmp_path, **KEEP) as real:
        real.mock.script(DONE)
        await real.ask(asked(tools=tools))
        shown = {tool["description"].split(" x")[0]: tool["name"] for tool in api_tools(real)}
        assert shown.keys() == {tool.name for tool in tools}
        assert all(len(tool["description"]) > 3000 for tool in api_tools(real))
        for name in odd:
            real.mock.script(calls(*call("toolu_1", shown[name].removeprefix("mcp__client__"))))
            events = await real.ask(asked(tools=tools))
            assert [event.name for event in events if isinstance(event, ToolCallStart)] == [name]


async def test_a_call_without_arguments_has_an_empty_object(tmp_path: Path) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        called = assistant(ToolUse("toolu_1", "get_weather", {}))
        first, _ = await loop(real, calls(*call("toolu_1", arguments="")), DONE, called=called, results=user(result()))

        assert [event.arguments for event in first if isinstance(event, ToolCallDelta)] == ["{}"]
        assert continued(real) == 1


async def test_arguments_that_are_no_json_end_the_answer_and_the_next_one_starts_afresh(tmp_path: Path) -> None:
    broken = calls(*call("toolu_1", arguments='{"city":"Ro'))
    async with open_real(tmp_path, **KEEP) as real:
        real.mock.script(broken, DONE)
        events = await real.ask(asked())

        assert isinstance(events[-1], Completed)
        assert events[-1].finish_reason == "tool_calls"
        assert real.backend.children.conversations == 0


async def test_of_calls_that_may_not_be_parallel_the_first_one_counts(tmp_path: Path) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        real.mock.script(TWO)
        events = await real.ask(asked(parallel_tool_calls=False))

        assert [event.id for event in events if isinstance(event, ToolCallStart)] == ["toolu_1"]
        assert real.backend.children.conversations == 0


# Calls that have to be made


async def test_a_forced_call_is_asked_for_until_it_comes_and_nothing_is_said_before_it(tmp_path: Path) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        real.mock.script(Answer(Say("No.")), ONE)
        events = await real.ask(asked(tool_choice=ToolChoice("required")))

        assert seen(events) == [
            TextDelta("Let me see."),
            ToolCallStart(0, "toolu_1", "get_weather"),
            ToolCallDelta(0, '{"city":"Rome"}'),
            ToolCallEnd(0),
            Completed("tool_calls", Usage(input=13, output=25)),
        ]
        assert [recorded.roles.count("assistant") for recorded in real.mock.requests] == [0, 1]
        assert "mcp__client__get_weather" in str(real.mock.requests[0].body["system"])


async def test_a_model_that_never_calls_is_an_error_and_no_answer(tmp_path: Path) -> None:
    async with open_real(tmp_path, **KEEP) as real:
        real.mock.script(Answer(Say("No.")))
        events = await real.ask(asked(tool_choice=ToolChoice("required")))

        assert seen(events) == [(UpstreamError, "the model called no tool in 3 attempts, and it had to")]
        assert len(real.mock.requests) == 3


async def test_only_the_tools_that_may_be_called_are_offered(tmp_path: Path) -> None:
    tools = (WEATHER, Tool("other", "", {}))
    async with open_real(tmp_path) as real:
        for choice, offered in [
            (ToolChoice("auto"), ["mcp__client__get_weather", "mcp__client__other"]),
            (ToolChoice("auto", ("other",)), ["mcp__client__other"]),
            (ToolChoice("none"), []),
        ]:
            real.mock.requests.clear()
            await real.ask(asked(tools=tools, tool_choice=choice))
            assert [tool["name"] for tool in api_tools(real)] == offered


async def test_beside_a_callers_tools_there_are_none_of_the_clis_own(tmp_path: Path) -> None:
    async with open_real(tmp_path, allowed_tools=["Read"]) as real:
        await real.ask(asked())
        await real.ask(request())

        names = [[tool["name"] for tool in recorded.body["tools"]] for recorded in real.mock.requests]
        assert names == [["mcp__client__get_weather"], ["Read"]]
