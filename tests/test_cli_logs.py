"""The log is read from the shell, and followed without gaps and duplicates."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import fake_program
import pytest
import trio
from commands import open_impostor, run
from server_process import INSTALLED, Server, shared_server

PROGRAM = INSTALLED[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with shared_server(fake_program.install(tmp_path_factory.mktemp("fake"))) as server:
        trio.run(server.wait_logged, "claude_found")
        yield server


def ask(server: Server) -> None:
    """Make the server log a request."""

    async def chat() -> None:
        async with server.chat("hi") as client:
            await client.answer()
        await server.wait_idle()

    trio.run(chat)


def test_an_entry_is_a_line_with_its_time_level_event_and_fields(server: Server) -> None:
    done = run("logs", "--event", "claude_found", OCP_URL=server.url)

    assert done.status == 0
    day, clock, *rest = done.out.split()
    assert (len(day), len(clock)) == (10, 8)
    assert rest == ["info", "claude_found", "version=2.1.332"]


def test_as_json_each_line_is_an_entry_as_the_server_has_it(server: Server) -> None:
    ask(server)

    done = run("logs", "-n", "1", "--event", "request_end", "--json", OCP_URL=server.url)

    [line] = done.out.splitlines()
    assert json.loads(line) == server.logged("request_end")[-1]


def test_what_is_asked_for_goes_by_number_level_and_event(server: Server) -> None:
    assert run("logs", "-n", "0", OCP_URL=server.url).out == ""
    assert run("logs", "--level", "critical", OCP_URL=server.url).out == ""
    assert run("logs", "--event", "nothing_such", OCP_URL=server.url) == (0, "", "")


def test_following_shows_every_entry_once_in_order(server: Server, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.defpath, "OCP_URL": server.url}
    command = [PROGRAM, "logs", "-f", "--json", "-n", "1", "--event", "request_end"]
    ask(server)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [json.loads(process.stdout.readline())]
        for _ in range(3):
            ask(server)
        seen += [json.loads(process.stdout.readline()) for _ in range(3)]
        ask(server)
        seen.append(json.loads(process.stdout.readline()))
        process.terminate()

    assert seen == server.logged("request_end")[-5:]


def test_entries_that_were_dropped_between_two_looks_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter([None, KeyboardInterrupt])
    monkeypatch.setattr("ocp_trio.cli.logs.time.sleep", lambda _: _raise(next(looks)))
    page = {"entries": [], "cursor": "a.9", "missed": 7}
    with open_impostor({"/logs": page}) as url:
        done = run("logs", "-f", OCP_URL=url)

    assert done == (130, "", "7 entries came and went meanwhile: the server keeps the newest only\n")


def _raise(error: type[BaseException] | None) -> None:
    if error is not None:
        raise error


def test_an_entry_of_any_shape_is_one_harmless_line() -> None:
    entry = {"ts": "?", "level": "[red]", "event": "a\nb", "nested": {"x": [1, None]}, "\x1b": "\x1b[2J", "n": 0.5}
    with open_impostor({"/logs": {"entries": [entry, {}]}}) as url:
        done = run("logs", OCP_URL=url)

    assert done.status == 0
    first, second = done.out.splitlines()
    assert first == '?  [red]    a\\nb  nested={"x":[1,null]}  \\x1b=\\x1b[2J  n=0.5'
    assert second.strip() == ""
