"""A child process never outlives its block, and nothing that it wrote is lost."""

import os
import random
import signal
from pathlib import Path

import pytest
import trio
from shell import ENV, LIMIT, OBEDIENT, STUBBORN, alive, open_python, open_shell, read_all, read_line
from watching import children, holdings, wait_gone

from ocp_trio.streaming import ProcessTally, open_child_process
from ocp_trio.streaming.process import SETPRIV

# What a child is


async def test_it_reads_its_input_and_its_output_is_streamed() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("read line; echo $line; read line; echo $line") as child:
            await child.stdin.send_all(b"one\n")
            assert await read_line(child) == "one"
            await child.stdin.send_all(b"two\n")

            assert await read_all(child) == b"two\n"
            await child.exited.wait()
    assert child.returncode == 0


async def test_closing_its_input_tells_it_that_nothing_follows() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("exec cat") as child:
            await child.stdin.send_all(b"all")
            await child.stdin.aclose()

            assert await read_all(child) == b"all"


async def test_its_environment_and_folder_are_those_that_are_given(tmp_path: Path) -> None:
    with trio.fail_after(LIMIT):
        async with open_child_process(["/usr/bin/env"], env={"ONLY": "this"}) as child:
            assert await read_all(child) == b"ONLY=this\n"
        async with open_shell("pwd", cwd=str(tmp_path)) as child:
            assert await read_line(child) == str(tmp_path)


async def test_it_leads_a_process_group_of_its_own() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell(OBEDIENT) as child:
            await read_line(child)

            assert child.returncode is None
            assert os.getpgid(child.pid) == os.getsid(child.pid) == child.pid != os.getpgid(0)


async def test_its_error_output_never_blocks_it_and_the_newest_is_kept() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("head -c 300000 /dev/zero >&2; printf 'the end' >&2; echo done") as child:
            assert await read_line(child) == "done"
            await child.exited.wait()

    assert len(child.stderr_tail) == 8192
    assert child.stderr_tail.endswith(b"\0the end")


# How it ends


async def test_it_is_counted_while_it_is_alive_and_so_are_the_signals_that_ended_it() -> None:
    tally = ProcessTally()
    seen = []
    with trio.fail_after(LIMIT):
        for script, grace_period in (("echo", 5.0), (OBEDIENT, 5.0), (STUBBORN, 0.2)):
            async with open_child_process(
                ["/bin/sh", "-c", script], env=ENV, grace_period=grace_period, tally=tally
            ) as child:
                seen.append(tally.alive)
                await read_line(child)
                if script == "echo":
                    await child.exited.wait()
            seen.append(tally.alive)

    assert seen == [1, 0] * 3
    assert tally.signals == {"SIGTERM": 2, "SIGKILL": 1}


async def test_one_that_exits_by_itself_is_reaped_at_once() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("exit 7") as child:
            await child.exited.wait()

            assert child.returncode == 7
            assert children(os.getpid()) == []


async def test_leaving_the_block_terminates_and_reaps_it() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell(OBEDIENT) as child:
            await read_line(child)

    assert child.returncode == -signal.SIGTERM
    assert child.exited.is_set()


async def test_an_error_in_the_block_does_the_same_and_passes() -> None:
    async def fail() -> None:
        async with open_shell(OBEDIENT) as child:
            pids.append(child.pid)
            raise ValueError("in the block")

    pids: list[int] = []
    with trio.fail_after(LIMIT), pytest.raises(ValueError, match="in the block"):
        await fail()

    assert not alive(pids[0])


async def test_so_does_a_cancellation() -> None:
    with trio.fail_after(LIMIT):
        with trio.CancelScope() as caller:
            async with open_shell(OBEDIENT) as child:
                await read_line(child)
                caller.cancel()
                await trio.sleep_forever()

    assert caller.cancelled_caught
    assert child.returncode == -signal.SIGTERM


@pytest.mark.parametrize("grace_period", [0.05, 0])
async def test_one_that_ignores_sigterm_is_killed_after_the_grace_period(grace_period: float) -> None:
    with trio.fail_after(LIMIT):  # row 41
        async with open_shell(STUBBORN, grace_period=grace_period) as child:
            await read_line(child)

    assert child.returncode == -signal.SIGKILL


async def test_a_shell_wrapper_goes_with_what_it_runs() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("sleep 1000 & echo $!; wait") as child:
            grandchild = int(await read_line(child))
            assert alive(grandchild)

        await wait_gone(grandchild)  # row 42


@pytest.mark.parametrize("script", ["exec sleep 1000", "trap '' TERM; while :; do sleep 1000; done"])
async def test_so_does_a_tool_in_a_session_of_its_own(script: str) -> None:
    with trio.fail_after(LIMIT):
        async with open_shell(f'setsid sh -c "echo \\$\\$; {script}" & wait', grace_period=0.2) as child:
            tool = int(await read_line(child))
            assert os.getsid(tool) == tool

        # It has ended, not only been told to: nobody else waited for it.
        assert not alive(tool)


async def test_what_an_exited_child_left_in_its_group_is_killed() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("sleep 1000 >/dev/null 2>&1 & echo $!") as child:
            grandchild = int(await read_line(child))
            await child.exited.wait()
            assert alive(grandchild)

        await wait_gone(grandchild)


async def test_the_process_group_of_an_exited_child_is_not_signalled_once_it_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("true") as child:
            await child.exited.wait()
            # The id may belong to anybody now.
            monkeypatch.delattr(os, "killpg")

    assert child.returncode == 0


@pytest.mark.skipif(SETPRIV is None, reason="the parent-death signal is set by setpriv")
async def test_it_dies_with_a_server_that_is_killed() -> None:
    server = f"""
import trio
from ocp_trio.streaming import open_child_process

async def main():
    async with open_child_process(["/bin/sh", "-c", {STUBBORN!r}], env={ENV!r}) as child:
        await child.receive_some()
        print(child.pid, flush=True)
        await trio.sleep_forever()

trio.run(main)
"""
    with trio.fail_after(LIMIT):
        async with open_python(server) as process:
            grandchild = int(await read_line(process))
            os.kill(process.pid, signal.SIGKILL)
            with trio.fail_after(2):
                await wait_gone(grandchild)  # row 40


async def test_three_hundred_children_leave_nothing_behind() -> None:
    chance = random.Random(43)
    at_once = trio.CapacityLimiter(16)
    cancelled = 0

    async def run(patience: float) -> None:
        nonlocal cancelled
        async with at_once:
            with trio.move_on_after(patience) as scope:
                async with open_shell("echo a; sleep 0.02; echo b", grace_period=1) as child:
                    await read_all(child)
            cancelled += scope.cancelled_caught

    await run(1)
    before = holdings(os.getpid())
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(300):  # row 43
                nursery.start_soon(run, chance.uniform(0, 0.04) if number % 2 else LIMIT)

    after = holdings(os.getpid())
    assert after[0] == before[0]
    # A thread that Trio had kept may have been let go.
    assert after[1] <= before[1]
    assert children(os.getpid()) == []
    assert cancelled > 50


# All of its output


async def test_all_that_it_wrote_is_read_after_its_exit() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("head -c 60000 /dev/zero") as child:
            await child.exited.wait()

            assert len(await read_all(child)) == 60_000


async def test_all_that_it_wrote_is_read_even_if_a_grandchild_holds_its_output_open() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("sleep 1000 & head -c 60000 /dev/zero") as child:
            await child.exited.wait()
            # Longer than the drain: it measures waiting, not time.
            await trio.sleep(0.2)

            assert len(await read_all(child)) == 60_000  # row 23


async def test_a_long_silence_before_its_last_words_costs_none_of_them() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("sleep 1000 & sleep 0.3; head -c 200000 /dev/zero") as child:
            assert len(await read_all(child)) == 200_000


async def test_the_output_of_an_exited_child_ends_although_a_grandchild_goes_on_writing() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("(while :; do echo more; sleep 0.01; done) & echo $!") as child:
            words = (await read_all(child)).split()

        [grandchild] = [int(word) for word in words if word != b"more"]
        await wait_gone(grandchild)


async def test_output_that_is_closed_ends_while_the_child_stays() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("echo last; exec >&- 2>&-; sleep 1000") as child:
            assert await read_all(child) == b"last\n"  # row 22
            assert child.returncode is None
    assert child.returncode == -signal.SIGTERM


async def test_a_cancelled_read_loses_nothing() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell("read line; echo answer") as child:
            with trio.move_on_after(0.05):
                await child.receive_some()
            await child.stdin.send_all(b"\n")

            assert await read_all(child) == b"answer\n"
