"""A test that leaves something behind fails."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PROCESS = """
import os

def test_process():
    pid = os.posix_spawn({command[0]!r}, {command!r}, {{}})
    {then}
"""
THREAD = """
import threading, time

release = threading.Event()

def test_thread():
    threading.Thread(target=release.wait, name="waits").start()

def teardown_module():
    release.set()
"""
CACHED_THREAD = """
import time, trio

async def test_thread():
    await trio.to_thread.run_sync(time.monotonic)
"""


def outcome(pytester: pytest.Pytester, test: str) -> pytest.RunResult:
    pytester.makeconftest(Path(__file__).with_name("conftest.py").read_text())
    pytester.makepyfile(test)
    return pytester.runpytest_inprocess("-p", "no:randomly", "-o", "trio_mode=true")


def test_a_running_child_fails_its_test(pytester: pytest.Pytester) -> None:
    result = outcome(pytester, PROCESS.format(command=["/bin/sleep", "1000"], then="pass"))

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.re_match_lines([r".*the test left processes behind: \d+ \(sleep\) [RSD]"])


def test_a_zombie_fails_its_test(pytester: pytest.Pytester) -> None:
    dead = "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)"

    result = outcome(pytester, PROCESS.format(command=["/bin/true"], then=dead))

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.re_match_lines([r".*the test left processes behind: \d+ \(true\) Z"])


def test_a_thread_fails_its_test(pytester: pytest.Pytester) -> None:
    result = outcome(pytester, THREAD)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the test left threads behind: waits"])


@pytest.mark.parametrize("test", [PROCESS.format(command=["/bin/true"], then="os.waitpid(pid, 0)"), CACHED_THREAD])
def test_what_has_ended_or_is_only_kept_for_later_fails_none(pytester: pytest.Pytester, test: str) -> None:
    outcome(pytester, test).assert_outcomes(passed=1)
