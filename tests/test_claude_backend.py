"""A request becomes a child, and what the child says becomes its answer."""

import json
import logging
import sys
from pathlib import Path

import pytest
import trio
from fake_backend import FakeBackend, ask, open_fake, request, seen, words
from fake_script import (
    Step,
    burst,
    close_stdout,
    dies,
    exits,
    failed_result,
    hang,
    linger,
    long_line,
    pieces,
    raw,
    sleep,
    stderr,
    success,
    text,
    thinking,
    tool_call,
    tool_result,
    whole_message,
)

from ocp_trio.claude import open_claude
from ocp_trio.completion import (
    Completed,
    Failed,
    Message,
    Started,
    Text,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    Usage,
)
from ocp_trio.errors import (
    BackendUnavailableError,
    ChildSpawnError,
    LineTooLongError,
    UpstreamError,
    UpstreamIncompleteError,
)

INCOMPLETE = (UpstreamIncompleteError, "the claude process ended without completing its answer")
NOT_EXECUTED = (ChildSpawnError, "the claude program could not be executed")
USAGE = Usage(input=3, output=5, cache_read=1000, cache_write=200)
SECRET = "sk-secret"
HISTORY = (Message("user", (Text("one"),)), Message("assistant", (Text("two"),)))


# Answers


async def test_an_answer_streams_delta_by_delta(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        events = await ask(fake, thinking("hm"), text("Hel", "lo"), success(usage=(3, 5, 1000, 200)))

    assert events[0] == Started()
    assert seen(events) == [
        ThinkingDelta("hm"),
        ThinkingEnd(),
        TextDelta("Hel"),
        TextDelta("lo"),
        Completed("stop", USAGE),
    ]


async def test_a_delta_is_told_while_the_answer_goes_on(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake, fake.backend.stream(request(text("a"), hang())) as batches:
        async for batch in batches:
            if TextDelta("a") in batch:
                break

        assert fake.backend.slots.in_flight == 1


async def test_a_burst_comes_in_few_batches_with_all_its_deltas(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake, fake.backend.stream(request(burst(2000), success())) as batches:
        sizes = [sum(isinstance(event, TextDelta) for event in batch) async for batch in batches]

    assert sum(sizes) == 2000
    assert len([size for size in sizes if size]) < 200


async def test_texts_around_a_tool_are_both_told(tmp_path: Path) -> None:
    rounds = (text("Look."), tool_call("Bash", command="true"), tool_result("x"), text("Answer"), success())

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, *rounds)

    assert words(events) == "Look.\n\nAnswer"
    assert isinstance(events[-1], Completed)


async def test_output_may_come_byte_by_byte(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        events = await ask(fake, pieces(text("\N{GRINNING FACE}"), success()))

    assert words(events) == "\N{GRINNING FACE}"


async def test_noise_is_counted_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")
    noise = raw(b'npm WARN x\n[]\n\n5\nnull\n\xff\n{"type":"future"}\n')

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, text("one"), noise, text(" two"), success())

    assert words(events) == "one two"
    assert [record.__dict__["count"] for record in caplog.records if record.message == "odd_lines"] == [6]


@pytest.mark.parametrize("size", [300_000, 2 * 2**20, 32 * 2**20])
async def test_a_long_line_is_an_answer(tmp_path: Path, size: int) -> None:
    message = {"id": "m", "content": [{"type": "text", "text": "%s"}]}
    before, after = json.dumps({"type": "assistant", "message": message}).encode().split(b"%s")
    line = (raw(before), raw(b"x" * 1000, (size - 1000) // 1000), raw(after + b"\n"))

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, *line, success(text="x"))

    assert len(words(events)) == (size - 1000) // 1000 * 1000
    assert isinstance(events[-1], Completed)


# What a child is told


async def test_history_arrives_with_its_true_roles(tmp_path: Path) -> None:
    history = (*HISTORY, *HISTORY)

    async with open_fake(tmp_path) as fake:
        await ask(fake, history=history)
        record = await fake.record()

    said = [(role, [block["text"] for block in content]) for role, content in record.queries[0]]
    assert said == [("user", ["one"]), ("assistant", ["two"])] * 2 + [("user", ["hi"])]


async def test_a_long_history_does_not_lock_up(tmp_path: Path) -> None:
    long = "x" * 100_000
    history = (Message("user", (Text(long),)), Message("assistant", (Text(long),))) * 20

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, history=history)
        record = await fake.record()

    assert (words(events), len(record.queries[0])) == ("ok", 41)


async def test_nothing_of_a_request_stands_in_arguments_or_environment(tmp_path: Path) -> None:
    fields = {"system": "systemic", "max_tokens": 4711, "effort": "xhigh", "text": "textual", "history": HISTORY}

    async with open_fake(tmp_path) as fake:
        await ask(fake, success(), **fields)
        await ask(fake)
        first, second = fake.records()

    assert first.argv == second.argv
    assert first.env == second.env
    told = json.dumps([first.argv, first.env])
    assert not [word for word in ("systemic", "4711", "xhigh", "textual", "sonnet", "two") if word in told]


async def test_a_child_runs_in_an_empty_folder_with_a_home_and_no_secrets(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake, fake.backend.stream(request(hang())):
        record = await fake.record()
        found = list(await trio.Path(record.cwd).iterdir())

    assert found == []
    assert record.env["HOME"] == str(tmp_path)
    assert not [name for name in record.env if "KEY" in name or name.startswith("CLAUDECODE")]
    assert not await trio.Path(record.cwd).exists()


async def test_the_input_ends_once_the_answer_is_complete(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        await ask(fake)
        [record] = fake.records()

    assert (record.saw_eof, record.signals, record.exit_status) == (True, [], 0)


# Children that fail


@pytest.mark.parametrize(
    "end",
    [
        [exits(0)],
        [exits(1)],
        [stderr(b"boom sk-secret\n"), exits(1)],
        [exits(143)],
        [dies("SIGKILL")],
        [dies("SIGSEGV")],
        [close_stdout(), hang()],
        [raw(b'{"type":"result","is_err'), exits(0)],
    ],
    ids=["exit 0", "exit 1", "exit 1 with stderr", "exit 143", "SIGKILL", "SIGSEGV", "stdout closed", "half a line"],
)
@pytest.mark.parametrize("before", [[], [text("part")]], ids=["at once", "in mid-stream"])
async def test_a_child_that_ends_early_leaves_an_incomplete_answer(
    tmp_path: Path, before: list[Step], end: list[Step]
) -> None:
    async with open_fake(tmp_path) as fake:
        events = await ask(fake, *before, *end)

    assert seen(events) == [*([TextDelta("part")] if before else []), INCOMPLETE]


@pytest.mark.parametrize("status", [126, 127])
async def test_a_launcher_that_cannot_execute_the_program_is_told_apart(tmp_path: Path, status: int) -> None:
    async with open_fake(tmp_path, startup=[exits(status)]) as fake:
        events = await ask(fake)

    assert seen(events) == [NOT_EXECUTED]


async def test_a_child_that_spoke_was_executed_whatever_its_status(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        events = await ask(fake, text("part"), exits(127))

    assert seen(events) == [TextDelta("part"), INCOMPLETE]


async def test_a_program_with_a_bad_interpreter_is_not_executed(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o755)

    with trio.fail_after(10):
        async with open_claude(str(program), environment={"HOME": str(tmp_path)}) as backend:
            events = await ask(FakeBackend(backend, tmp_path))

    assert seen(events) == [NOT_EXECUTED]
    assert str(tmp_path) not in str(seen(events))


@pytest.mark.parametrize("kind", ["missing", "a folder", "not executable"])
async def test_a_program_that_cannot_be_started_is_refused_before_a_stream_begins(tmp_path: Path, kind: str) -> None:
    program = tmp_path / "claude"
    if kind == "a folder":
        program.mkdir()
    elif kind == "not executable":
        program.write_text(f"#!{sys.executable}\n")

    async with open_claude(str(program), environment={"HOME": str(tmp_path)}, max_concurrent=1, max_queue=0) as backend:
        for _ in range(5):
            with pytest.raises(ChildSpawnError) as refusal:
                async with backend.stream(request()):
                    pass
            assert str(tmp_path) not in str(refusal.value)
        assert backend.slots.in_flight == 0


async def test_no_program_is_no_backend() -> None:
    with pytest.raises(BackendUnavailableError):
        async with open_claude(None, environment={}):
            pass


async def test_an_error_on_a_last_line_without_line_feed_counts(tmp_path: Path) -> None:
    line = b'{"type":"result","is_error":true,"result":"x","api_error_status":500}'

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, raw(line), exits(0))

    assert seen(events) == [(UpstreamError, "upstream failed with status 500")]


async def test_a_line_over_the_bound_ends_the_answer_and_its_child(tmp_path: Path) -> None:
    async with open_fake(tmp_path, max_line=100_000) as fake:
        events = await ask(fake, text("part"), long_line(100_002), hang())
        [record] = fake.records()

    assert seen(events) == [TextDelta("part"), (LineTooLongError, "upstream sent a line longer than 100000 bytes")]
    assert record.signals == ["SIGTERM"]


async def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    async with open_fake(tmp_path, max_line=2**20) as fake:
        events = await ask(fake, raw(b"x" * 1000, 100_000))

    assert seen(events) == [(LineTooLongError, "upstream sent a line longer than 1048576 bytes")]


async def test_a_long_line_after_the_answer_harms_nobody(tmp_path: Path) -> None:
    async with open_fake(tmp_path, max_line=100_000) as fake:
        events = await ask(fake, text("a"), success(), long_line(200_000))

    assert [type(event) for event in events[-1:]] == [Completed]


async def test_error_output_does_not_block_a_child_and_is_not_told(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        well = await ask(fake, stderr(SECRET.encode(), 30_000), text("a"), success())
        ill = await ask(fake, stderr(SECRET.encode()), failed_result(f"open {tmp_path}/.claude.json {SECRET}"))

    assert seen(well)[-2] == TextDelta("a")
    assert seen(ill) == [(UpstreamError, "upstream failed")]
    assert SECRET not in repr((well, ill))


# Answers and exits


async def test_an_answer_ends_at_its_result_and_not_with_the_child(tmp_path: Path) -> None:
    async with open_fake(tmp_path, grace_period=0.1) as fake:
        async with fake.backend.stream(request(linger(), text("a"), success(), hang())) as batches:
            last = [event async for batch in batches for event in batch][-1]
            [record] = fake.records()
            assert record.exit_status is None
        [record] = fake.records()

    assert isinstance(last, Completed)
    assert (record.saw_eof, record.signals) == (True, ["SIGTERM"])


async def test_two_results_are_one_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ocp_trio")

    async with open_fake(tmp_path) as fake:
        events = await ask(fake, text("a"), success(), sleep(0.05), whole_message("more"), failed_result("x"))

    assert [type(event) for event in events if isinstance(event, Completed | Failed)] == [Completed]
    assert [record.message for record in caplog.records] == ["late_event"]


async def test_the_consumer_may_leave_at_any_time(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        async with fake.backend.stream(request(hang())):
            pass
        async with fake.backend.stream(request(text("a"), hang())) as batches:
            async for _ in batches:
                break

        assert fake.backend.slots.in_flight == 0
