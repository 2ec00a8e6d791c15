"""The descendants of a process are found in whatever session they run, and held so that no other is signalled."""

import os
import signal

import trio
from shell import LIMIT, alive, open_shell, read_line
from watching import holdings

from ocp_trio.streaming import descendants

TREE = "setsid sh -c 'sleep 1000 & echo $! $$; exec sleep 1000' & wait"
"""A child, its child in a session of its own, and a grandchild; it prints the ids of the two."""


async def test_children_and_their_children_are_signalled_and_waited_for() -> None:
    with trio.fail_after(LIMIT):
        async with open_shell(TREE) as child:
            pids = [int(word) for word in (await read_line(child)).split()]
            with descendants.of(child.pid) as family:
                family.signal(signal.SIGKILL)
                await family.wait()

                assert [pid for pid in pids if alive(pid)] == []


def spawn(program: str, *arguments: str) -> int:
    """Start a child of this process."""
    return os.posix_spawn(program, [program, *arguments], {})


def reap(pid: int) -> int:
    """Return the exit status of a child, once it has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


async def test_those_of_all_threads_are_found() -> None:
    with trio.fail_after(LIMIT):
        pid = await trio.to_thread.run_sync(spawn, "/bin/sleep", "1000")
        with descendants.of(os.getpid()) as family:
            family.signal(signal.SIGTERM)
            await family.wait()

        assert reap(pid) == -signal.SIGTERM


async def test_a_signal_to_those_that_have_ended_reaches_nobody() -> None:
    pid = spawn("/bin/true")
    with trio.fail_after(LIMIT), descendants.of(os.getpid()) as family:
        await family.wait()
        assert reap(pid) == 0

        family.signal(signal.SIGKILL)


def test_a_process_that_does_not_exist_has_none() -> None:
    before = holdings(os.getpid())

    with descendants.of(2**22 + 1) as family:
        family.signal(signal.SIGKILL)

    assert holdings(os.getpid()) == before


def test_they_are_held_for_the_length_of_a_block() -> None:
    pid = spawn("/bin/sleep", "1000")
    before, _ = holdings(os.getpid())

    with descendants.of(os.getpid()) as family:
        assert holdings(os.getpid())[0] == before + 1
        family.signal(signal.SIGKILL)

    assert holdings(os.getpid())[0] == before
    assert reap(pid) == -signal.SIGKILL
