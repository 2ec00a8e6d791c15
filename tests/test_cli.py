"""Every command says plainly how it ended: in its exit status, and in one sentence on stderr."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from commands import leaves, open_impostor, run
from server_process import INSTALLED

from ocp_trio.cli import main

PROGRAM = INSTALLED[0]
COMMANDS = list(main.commands_by_name)


def test_help_lists_every_command_with_its_own_summary() -> None:
    done = run("--help")

    listed = " ".join(done.out.split())
    with click.Context(main) as context:
        for name in COMMANDS:
            command = main.get_command(context, name)
            assert command is not None
            assert command.get_short_help_str(200) == main.commands_by_name[name]
            assert f" {name} {main.commands_by_name[name]}" in listed
    assert done.status == 0


@pytest.mark.parametrize("path", [path for path, _ in leaves(main)], ids=" ".join)
def test_every_command_has_help_and_but_for_serve_a_machine_readable_form(path: tuple[str, ...]) -> None:
    done = run(*path, "--help")

    assert done.status == 0
    assert ("--json" in done.out) == (path != ("serve",))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_nothing_that_takes_time(arguments: list[str]) -> None:
    program = (
        "import sys; from ocp_trio.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print(*sorted({'httpx', 'msgspec', 'quart', 'rich', 'trio'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stderr == "\n"


def test_serve_does_not_wait_for_what_other_commands_need() -> None:
    program = "import sys; import ocp_trio.cli.serve; print(*[name for name in sys.modules if 'ocp_trio.cli' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert set(done.stdout.split()) == {
        "ocp_trio.cli",
        "ocp_trio.cli.lazy",
        "ocp_trio.cli.serve",
        "ocp_trio.cli.failures",
        "ocp_trio.cli.text",
    }


@pytest.mark.parametrize("arguments", [["nonsense"], ["models", "--nonsense"], ["keys", "add"], ["logs", "-n", "x"]])
def test_a_wrong_usage_is_status_2_and_names_the_help(arguments: list[str]) -> None:
    done = run(*arguments)

    assert (done.status, done.out) == (2, "")
    assert "--help' for help." in done.err


def test_nobody_at_the_address_is_status_3_and_says_how_to_start_one() -> None:
    done = run("models", "--url", "http://127.0.0.1:1")

    assert done == (
        3,
        "",
        (
            "ocp-trio: no server listens at http://127.0.0.1:1; start one there with `ocp-trio serve`, "
            "or name another address\n"
        ),
    )


def test_a_host_that_does_not_exist_is_status_3() -> None:
    done = run("models", "--url", "no-such-host.invalid")

    assert (done.status, done.out) == (3, "")
    assert done.err.startswith("ocp-trio: http://no-such-host.invalid:3456 cannot be reached (")
    assert done.err.endswith("); start one there with `ocp-trio serve`, or name another address\n")


@pytest.mark.parametrize(
    ("answer", "kind", "status", "told"),
    [
        ("<html>It works!</html>", "text/html; charset=x", 200, "status 200, text/html"),
        ("<html>Not here</html>", "text/html", 404, "status 404, text/html"),
        ("", "text/plain", 302, "status 302, text/plain"),
        ({"data": [{"name": "x"}]}, "application/json", 200, "Object missing required field `id`"),
        ([], "application/json", 200, "Expected `object`, got `array`"),
        ({"detail": "no"}, "application/json", 404, "status 404"),
        ({"error": "no"}, "application/json", 500, "status 500"),
    ],
)
def test_somebody_else_at_the_address_is_status_3_and_never_a_traceback(
    answer: object, kind: str, status: int, told: str
) -> None:
    with open_impostor({"": answer}, status=status, kind=kind) as url:
        done = run("models", "--url", url)

    assert (done.status, done.out) == (3, "")
    assert done.err.startswith(f"ocp-trio: {url} answers, but not as this server does ({told}")
    assert done.err.endswith("): is that the right address?\n")


def test_an_answer_cannot_act_on_the_terminal() -> None:
    hostile = {"data": [{"id": "a\x1b]0;title\x07\u202e", "owned_by": "[bold red]b[/] :smile:"}]}
    with open_impostor({"": hostile}) as url:
        done = run("models", "--url", url)
        as_json = run("models", "--url", url, "--json")
    with open_impostor({"": {"error": {"message": "no\x1b[2J\nmore"}}}, status=500) as url:
        refused = run("models", "--url", url)

    assert "a\\x1b]0;title\\x07\\u202e  [bold red]b[/] :smile:" in done.out
    assert as_json.out.isascii()
    assert as_json.json == hostile
    assert refused == (1, "", "ocp-trio: no\\x1b[2J\\nmore\n")


def test_ctrl_c_ends_a_command_without_a_word(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    entries = {"entries": [{"ts": "x", "level": "info", "event": "begun"}], "cursor": "a.1", "missed": 0}
    with open_impostor({"": entries}) as url:
        command = [PROGRAM, "logs", "-f", "--json", "--url", url]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert b"begun" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, b"")


def test_a_reader_that_leaves_ends_a_command_without_a_word(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    # More than a pipe holds.
    models = {"data": [{"id": f"model-{number}-{'x' * 100}"} for number in range(5000)]}
    with open_impostor({"": models}) as url:
        for form in ([], ["--json"]):
            command = [PROGRAM, "models", *form, "--url", url]
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                assert process.stdout is not None
                process.stdout.readline()
                process.stdout.close()
                process.stdout = None
                _, err = process.communicate(timeout=60)

            assert (process.returncode, err) == (1, b"")
