"""The fake CLI lives, dies, waits and misbehaves exactly as its script says."""

import json
import os
import signal
from pathlib import Path

import captures
import pytest
import trio
from fake_driver import assistant, control, run, running, shape, shapes, user
from fake_program import install, records
from fake_script import (
    burst,
    close_stdout,
    exits,
    grandchild,
    hang,
    ignore_sigterm,
    linger,
    prompt,
    retry,
    sleep,
    success,
    text,
    wait_for,
)

LIMIT = 10  # seconds, for any test that talks to a child

WORDS = text(*(f"w{n} " for n in range(21)))
BEGUN = 25  # lines up to the last of these words
INTERRUPTED = shapes(captures.stdout("09-SIGINT-mid-stream"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


async def test_stdin_that_ends_in_mid_turn_is_no_cancellation(program: Path) -> None:
    played = run(program, user(prompt(text("a"), sleep(0.05), text("b"), success())))

    assert json.loads(played.stdout.splitlines()[-1])["result"] == "ab"


async def test_it_stays_after_a_result_and_answers_the_next_message(program: Path, tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user("one", shouldQuery=False))
            await child.lines(until="result")
            await child.send(assistant("two"), user("three"))
            await child.lines(until="result")
            await child.send(user(prompt(text("again"), success())))
            *_, result = await child.lines(until="result")
            await child.stdin.aclose()

            assert await child.lines() == []
            assert await child.process.wait() == 0
    assert result["result"] == "again"
    [record] = records(tmp_path)
    assert [role for role, _ in record.queries[0]] == ["user", "assistant", "user"]
    assert [role for role, _ in record.queries[1]] == ["user", "assistant", "user", "assistant", "user"]
    assert record.saw_eof


async def test_sigterm_ends_it_with_143_and_nothing_more_printed(program: Path, tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(text("a"), hang())))
            await child.lines(until="content_block_delta")
            child.process.terminate()

            assert await child.lines() == []
            assert await child.process.wait() == captures.meta("09-SIGTERM-mid-stream")["exit_code"] == 143
    [record] = records(tmp_path)
    assert (record.signals, record.exit_status) == (["SIGTERM"], 143)


async def test_sigterm_can_be_ignored(program: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(ignore_sigterm(), text("a"), wait_for(release), success())))
            await child.lines(until="content_block_delta")
            child.process.terminate()
            release.touch()

            assert (await child.lines(until="result"))[-1]["is_error"] is False
    assert records(tmp_path)[0].signals == ["SIGTERM"]


async def test_sigint_prints_what_the_capture_shows_and_exits_with_0(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(WORDS, hang())))
            begun = await child.shapes(BEGUN)
            child.process.send_signal(signal.SIGINT)

            assert begun + await child.shapes() == INTERRUPTED
            assert await child.process.wait() == captures.meta("09-SIGINT-mid-stream")["exit_code"] == 0


async def test_sigint_while_nothing_streams_prints_what_the_capture_shows(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(*[retry(n, status=500) for n in range(4)], hang())))
            begun = await child.shapes(6)
            child.process.send_signal(signal.SIGINT)

            assert begun + await child.shapes() == shapes(captures.stdout("09-SIGINT-during-api-retry-wait"))


async def test_an_interrupt_request_cuts_the_turn_and_the_next_one_works(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(WORDS, hang())))
            begun = await child.shapes(BEGUN)
            await child.send(control("interrupt"))
            receipt, *cut = await child.lines(until="result")
            await child.send(user("hi"))
            *_, result = await child.lines(until="result")

    assert receipt["response"] == {"subtype": "success", "request_id": "r1", "response": {"still_queued": []}}
    assert begun + [shape(line) for line in cut] == INTERRUPTED
    assert result["result"] == "ok"


async def test_end_session_ends_as_in_the_capture(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(text(*"0123456789"), success())))
            answer = await child.shapes(19)
            await child.send(control("end_session"))

            assert answer + await child.shapes() == shapes(captures.stdout("09-stream-json-end_session"))
            assert await child.process.wait() == 0


async def test_end_session_cuts_the_turn_and_ends_the_process(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(text("a"), hang())))
            await child.lines(until="content_block_delta")
            await child.send(control("end_session"))
            receipt, *_, result = await child.lines()

            # As measured on the real one: an orderly end after a failed result has status 1.
            assert await child.process.wait() == 1
    assert (receipt["type"], result["subtype"]) == ("control_response", "error_during_execution")


async def test_a_lingering_child_ends_only_by_a_signal(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(linger(), text("a"), success())))
            await child.lines(until="result")
            await child.send(control("end_session"))
            await child.lines(until="control_response")
            await child.stdin.aclose()
            child.process.send_signal(signal.SIGHUP)

            assert await child.process.wait() == 129


async def test_a_deaf_child_answers_no_control_request(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(text("a"), hang(deaf=True))))
            await child.lines(until="content_block_delta")
            await child.send(control("interrupt"))
            child.process.terminate()

            assert await child.lines() == []


@pytest.mark.parametrize("own_session", [False, True])
async def test_a_grandchild_stays_in_the_group_or_not(own_session: bool, program: Path, tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(grandchild(own_session=own_session), text("a"), hang())))
            await child.lines(until="content_block_delta")
            [record] = records(tmp_path)
            [pid] = record.grandchildren
            group = os.getpgid(pid)
            os.kill(pid, signal.SIGKILL)

    assert group == (pid if own_session else record.pgid)
    assert record.pid == record.pgid == child.process.pid


async def test_a_grandchild_that_holds_stdout_keeps_it_open_after_the_exit(program: Path, tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(grandchild(holds_stdout=True), text("a"), exits(3))))
            await child.lines(until="content_block_delta")
            assert await child.process.wait() == 3
            with trio.move_on_after(0.05) as silence:
                await child.line()
            os.kill(records(tmp_path)[0].grandchildren[0], signal.SIGKILL)

            assert silence.cancelled_caught
            assert await child.line() is None


async def test_it_can_close_stdout_and_stay(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(text("a"), close_stdout(), hang())))
            *_, last = await child.lines()

            assert last["event"]["delta"]["text"] == "a"
            assert child.process.poll() is None


async def test_a_reader_that_goes_away_changes_nothing(program: Path, tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.close_stdout()
            await child.send(user(prompt(burst(5000), success())))
            await child.stdin.aclose()

            assert await child.process.wait() == 0
    assert records(tmp_path)[0].marks == ["unread"]


async def test_a_forgotten_child_ends_by_its_alarm(program: Path) -> None:
    with trio.fail_after(LIMIT):
        async with running(program) as child:
            await child.send(user(prompt(ignore_sigterm(), text("a"), hang())))
            await child.lines(until="content_block_delta")
            child.process.send_signal(signal.SIGALRM)

            assert await child.process.wait() == -signal.SIGALRM
