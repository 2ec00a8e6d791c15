"""The fake CLI prints any bytes, dies of anything, and records what it was started with."""

import json
import os
from pathlib import Path

import pytest
from fake_driver import ARGV, control, run, shapes, user
from fake_program import install, records
from fake_script import (
    burst,
    dies,
    exits,
    long_line,
    mark,
    pieces,
    prompt,
    raw,
    stderr,
    success,
    text,
    without_init,
)
from fake_script import line as unknown_line


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


@pytest.mark.parametrize(("name", "number"), [("SIGKILL", -9), ("SIGSEGV", -11), ("SIGTERM", -15)])
def test_it_can_die_of_a_signal(name: str, number: int, program: Path) -> None:
    assert run(program, user(prompt(text("a"), dies(name)))).returncode == number


def test_it_can_die_before_it_reads_anything(tmp_path: Path) -> None:
    program = install(tmp_path, startup=[mark("early"), stderr(b"no\n"), exits(7)])

    played = run(program, user("hi"))

    assert (played.returncode, played.stdout, played.stderr) == (7, b"", b"no\n")
    assert records(tmp_path)[0].stdin == []


def test_stderr_takes_any_amount(program: Path) -> None:
    played = run(program, user(prompt(stderr(b"0123456789\n", 20_000), text("a"), success())))

    assert len(played.stderr) == 220_000


def test_bytes_are_printed_as_they_are(program: Path) -> None:
    played = run(program, user(prompt(without_init(), raw(b"\xff\n", 3), unknown_line(type="new"), long_line(1000))))

    *lines, long = played.stdout.splitlines(keepends=True)
    assert lines == [b"\xff\n"] * 3 + [b'{"type": "new"}\n']
    assert (len(long), json.loads(long)["type"]) == (1000, "padding")


def test_a_line_in_pieces_is_the_same_line(program: Path) -> None:
    whole = run(program, user(prompt(text("h\xe9\N{GRINNING FACE}"), success())))
    for size in (1, 7):
        cut = run(program, user(prompt(pieces(text("h\xe9\N{GRINNING FACE}"), size=size), success())))
        assert cut.stdout == whole.stdout


@pytest.mark.parametrize("gap", [0, 0.001])
def test_a_burst_is_so_many_deltas_and_one_text(gap: float, program: Path) -> None:
    played = run(program, user(prompt(burst(50, "a", gap=gap), success())))

    assert [kind for _, kind, _ in shapes(played.stdout)].count("content_block_delta") == 50
    assert json.loads(played.stdout.splitlines()[-1])["result"] == "a" * 50


def test_the_record_says_what_it_was_started_with(program: Path, tmp_path: Path) -> None:
    run(program, control("initialize", systemPrompt=["S"]), user("hi"), env={"SECRET": "x"})

    [record] = records(tmp_path)
    assert (record.argv, record.env["SECRET"], record.cwd) == (ARGV, "x", str(Path.cwd()))
    assert (record.ppid, record.sid) == (os.getpid(), os.getsid(0))
    assert record.controls == [{"subtype": "initialize", "systemPrompt": ["S"]}]
    assert [json.loads(said)["type"] for said in record.stdin] == ["control_request", "user"]
