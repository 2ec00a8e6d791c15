"""The pinned CLI does, against a mock of its API, what the claude backend relies on."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
import trio
from mock_anthropic import MockAnthropic, api_error, open_mock_anthropic
from raw_cli import Line, RawCli, assistant, control, deltas, kind, of_kind, open_raw_cli, require_cli, user
from sse_script import Answer, Arguments, BlockEnd, Cut, Fail, Signature, Step, Text, Thinking, ToolUse, Usage, Wait

pytestmark = pytest.mark.real_cli

NO_RETRY = control("retries", "apply_flag_settings", settings={"env": {"CLAUDE_CODE_MAX_RETRIES": "0"}})


@pytest.fixture
def executable() -> Path:
    return require_cli()


@pytest.fixture
async def mock(executable: Path) -> AsyncIterator[MockAnthropic]:
    with trio.fail_after(60):
        async with open_mock_anthropic() as mock:
            yield mock


@pytest.fixture
async def cli(executable: Path, mock: MockAnthropic, tmp_path: Path) -> AsyncIterator[RawCli]:
    async with open_raw_cli(executable, mock.url, tmp_path) as cli:
        yield cli


async def test_text_comes_delta_by_delta(mock: MockAnthropic, cli: RawCli) -> None:
    mock.script(Answer(Text("Hel"), Text("lo"), usage=Usage(input=3, output=7, cache_read=2, cache_write=1)))

    lines = await cli.ask(user("hi"))

    assert [kind(line) for line in lines] == [
        "init",
        "status",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "assistant",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "result",
    ]
    assert deltas(lines) == ["Hel", "lo"]
    assert (lines[-1]["is_error"], lines[-1]["result"]) == (False, "Hello")
    usage = lines[-1]["usage"]
    assert [usage[name] for name in ("input_tokens", "output_tokens")] == [3, 7]
    assert [usage[name] for name in ("cache_read_input_tokens", "cache_creation_input_tokens")] == [2, 1]


async def test_thinking_comes_delta_by_delta(mock: MockAnthropic, cli: RawCli) -> None:
    mock.script(Answer(Thinking("h"), Thinking("m"), Signature("sig"), Text("yes")))

    lines = await cli.ask(user("hi"))

    assert deltas(lines) == ["h", "m", "sig", "yes"]
    assert len(of_kind(lines, "thinking_tokens")) == 2


async def test_settings_and_message_may_be_written_in_one_go(mock: MockAnthropic, cli: RawCli) -> None:
    settings = {
        "model": "claude-opus-4-5",
        "effortLevel": "low",
        "env": {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "2000"},
    }

    await cli.ask(
        control("i", "initialize", systemPrompt=["You are T."]),
        control("s", "apply_flag_settings", settings=settings),
        user("hi"),
    )

    [request] = mock.requests
    assert (request.body["model"], request.body["max_tokens"]) == ("claude-opus-4-5", 2000)
    assert request.body["output_config"] == {"effort": "low"}
    assert request.body["system"][-1]["text"] == "You are T."


async def test_history_keeps_its_roles(mock: MockAnthropic, cli: RawCli) -> None:
    await cli.ask(user("one", shouldQuery=False))
    await cli.ask(assistant("two"), user("three", shouldQuery=False))
    await cli.ask(assistant("four"), user("five"))

    [request] = mock.requests
    said = [(message["role"], message["content"]) for message in request.body["messages"]]
    assert [role for role, _ in said if role != "system"] == ["user", "assistant", "user", "assistant", "user"]
    assert [content for role, content in said if role == "user"] == ["one", "three", "five"]


async def test_paths_and_commands_stay_text(mock: MockAnthropic, cli: RawCli) -> None:
    await cli.ask(user("read @/etc/hostname", shouldQuery=False))
    await cli.ask(assistant("no"), user("/help"))

    [request] = mock.requests
    users = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
    assert users == ["read @/etc/hostname", "/help"]


async def test_tool_calls_and_results_of_the_history_arrive_whole(mock: MockAnthropic, cli: RawCli) -> None:
    call = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Paris"}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}

    await cli.ask(user("hi", shouldQuery=False))
    await cli.ask(assistant([call]), user([result]))

    [request] = mock.requests
    parts = [part for message in request.body["messages"] if message["role"] != "system" for part in message["content"]]
    assert call in parts
    assert result.items() <= parts[-1].items()
    assert request.body["tools"] == []


async def test_a_tool_runs_and_its_result_goes_back(mock: MockAnthropic, executable: Path, tmp_path: Path) -> None:
    call = (ToolUse("toolu_1", "Bash"), Arguments('{"command": "ec'), Arguments('ho hi"}'))
    mock.script(Answer(Text("wait"), *call, stop_reason="tool_use"), Answer(Text("done")))

    flags = ("--tools", "Bash", "--allowedTools", "Bash(echo:*)")
    async with open_raw_cli(executable, mock.url, tmp_path, flags=flags) as cli:
        lines = await cli.ask(user("run"))

    assert deltas(lines) == ["wait", '{"command": "ec', 'ho hi"}', "done"]
    [result] = mock.requests[1].body["messages"][-1]["content"]
    assert (result["tool_use_id"], result["content"], result["is_error"]) == ("toolu_1", "hi", False)


@pytest.mark.parametrize(("status", "error"), [(401, "authentication_failed"), (500, "server_error")])
async def test_retries_can_be_switched_off_on_a_running_process(
    mock: MockAnthropic, cli: RawCli, status: int, error: str
) -> None:
    mock.script(api_error(status, "no"))

    lines = await cli.ask(NO_RETRY, user("hi"))

    assert len(mock.requests) == 1
    assert (lines[-1]["is_error"], lines[-1]["api_error_status"]) == (True, status)
    assert [line["error"] for line in of_kind(lines, "assistant")] == [error]


async def test_a_far_retry_after_is_not_waited_for(mock: MockAnthropic, cli: RawCli) -> None:
    mock.script(api_error(429, "slow down", headers={"retry-after": "3600"}))

    lines = await cli.ask(user("hi"))

    assert len(mock.requests) == 1
    assert (lines[-1]["is_error"], lines[-1]["api_error_status"]) == (True, 429)


async def ask_and_break(mock: MockAnthropic, cli: RawCli, *steps: Step, then: Answer) -> list[str]:
    """Break a stream after ``steps`` once the CLI has told the last of them; return what is told, in short."""
    *before, last = steps
    seen = trio.Event()
    mock.script(Answer(*before, Wait(seen), last), then)
    texts = [step.text for step in before if isinstance(step, Text)]
    lines: list[Line] = []
    await cli.write(user("hi"))
    while deltas(lines)[-1:] != texts[-1:]:
        lines += await cli.read_until("content_block_delta")
    seen.set()
    lines += await cli.read_until("result")
    return [short for line in lines if (short := shorten(line))]


def shorten(line: Line) -> str:
    match kind(line), line:
        case "content_block_delta", {"event": {"delta": {"text": text}}}:
            return f"delta {text}"
        case "message_stop", {"abandoned_blocks": {"from_block_index": index}}:
            return f"abandoned from {index}"
        case "assistant", {"message": {"content": [{"text": text}]}}:
            return f"assistant {text}"
        case ("message_start" | "api_retry" | "user" | "result") as name, _:
            return str(name)
    return ""


async def test_an_error_event_leads_to_a_request_without_streaming(mock: MockAnthropic, cli: RawCli) -> None:
    told = await ask_and_break(mock, cli, Text("par"), Fail(), then=Answer(Text("whole")))

    assert told == ["message_start", "delta par", "abandoned from 0", "assistant whole", "result"]
    assert [request.body.get("stream", False) for request in mock.requests] == [True, False]


@pytest.mark.parametrize("how", ["fin", "rst", "truncated"])
async def test_a_lost_connection_leads_to_a_second_stream(
    mock: MockAnthropic, cli: RawCli, how: Literal["fin", "rst", "truncated"]
) -> None:
    told = await ask_and_break(mock, cli, Text("par"), Cut(how), then=Answer(Text("whole")))

    again = ["message_start", "delta whole", "assistant whole", "result"]
    assert told == ["message_start", "delta par", "abandoned from 0", "api_retry", *again]


@pytest.mark.parametrize("break_", [Fail(), Cut("fin"), Cut("rst"), Cut("truncated")])
async def test_after_a_finished_block_the_model_is_asked_to_go_on(
    mock: MockAnthropic, cli: RawCli, break_: Fail | Cut
) -> None:
    told = await ask_and_break(mock, cli, Text("one"), BlockEnd(), Text("tw"), break_, then=Answer(Text("two")))

    first = ["message_start", "delta one", "assistant one", "delta tw", "abandoned from 1"]
    assert told == [*first, "user", "message_start", "delta two", "assistant two", "result"]
    assert [role for role in mock.requests[1].roles if role != "system"] == ["user", "assistant", "user"]
    assert "cut off mid-stream" in mock.requests[1].last_user_text


async def test_the_end_of_input_after_a_result_ends_it(mock: MockAnthropic, cli: RawCli) -> None:
    await cli.ask(user("hi"))

    await cli.close_stdin()

    assert await cli.read() is None
    assert await cli.process.wait() == 0


async def test_sigterm_ends_it_and_its_request_at_once(mock: MockAnthropic, cli: RawCli) -> None:
    mock.script(Answer(Text("par"), Wait(trio.Event())))
    await cli.write(user("hi"))
    await cli.read_until("content_block_delta")

    cli.process.send_signal(signal.SIGTERM)

    assert await cli.read() is None
    assert await cli.process.wait() == 143
    await mock.requests[0].closed.wait()
