"""The fake CLI takes arguments, history and control requests as the real one does."""

import json
from pathlib import Path

import captures
import pytest
from fake_driver import assistant, control, run, shapes, user
from fake_program import install, records
from fake_script import prompt, success, text


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return install(tmp_path)


def test_only_the_last_user_message_is_played(program: Path) -> None:
    earlier = user(prompt(text("not this")), shouldQuery=False)
    parts = [{"type": "text", "text": "hi"}, {"type": "text", "text": prompt(text("this"), success())}]

    *_, result = run(program, earlier, user(parts)).stdout.splitlines()

    assert json.loads(result)["result"] == "this"


def test_history_is_acknowledged_and_out_of_order_when_not_waited_for(program: Path, tmp_path: Path) -> None:
    name = "10-assistant-history-injection"

    played = run(program, user("a", shouldQuery=False), assistant("b"), user(prompt(text("x"), success())))

    assert shapes(played.stdout) == shapes(captures.stdout(name))
    [record] = records(tmp_path)
    assert [[role for role, _ in query] for query in record.queries] == [["assistant", "user", "user"]]


def test_initialize_is_answered_as_in_the_capture(program: Path) -> None:
    script = prompt(text("x"), success())

    played = run(program, control("initialize", systemPrompt=["S"]), user(script))

    assert shapes(played.stdout) == shapes(captures.stdout("10-initialize-systemPrompt-over-flag"))


def test_settings_choose_the_model(program: Path) -> None:
    settings = {"model": "claude-sonnet-4-5", "effortLevel": "low"}

    played = run(program, control("apply_flag_settings", settings=settings), user(prompt(text("x"), success())))

    real = captures.stdout("10-apply_flag_settings-model").splitlines()
    ours = played.stdout.splitlines()
    assert shapes(played.stdout) == shapes(b"\n".join(real))
    assert json.loads(ours[1])["model"] == json.loads(real[1])["model"] == "claude-sonnet-4-5"


def test_an_unknown_control_request_is_refused_as_in_the_capture(program: Path) -> None:
    request = control("no_such_subtype") | {"request_id": "xx-1"}

    played = run(program, request)

    assert played.stdout in captures.stdout("10-control-misc")


def test_a_line_that_is_not_json_ends_it(program: Path) -> None:
    played = run(program, b"this is not json\n")

    name = "10-bad-json-line"
    assert (played.returncode, played.stdout, played.stderr.decode()) == (1, b"", captures.stderr(name))


def test_without_a_message_it_ends_in_silence(program: Path) -> None:
    played = run(program)

    assert (played.returncode, played.stdout, played.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", ["11-unknown-flag", "11-stream-json-without-verbose", "13-prompt-empty"])
def test_a_refused_command_line_is_refused_in_the_same_words(name: str, program: Path) -> None:
    played = run(program, argv=captures.meta(name)["argv"][1:])

    assert (played.returncode, played.stdout, played.stderr.decode()) == (1, b"", captures.stderr(name))


def test_the_version_is_that_of_the_captures(program: Path, tmp_path: Path) -> None:
    assert run(program, argv=["--version"]).stdout == b"2.1.332 (Claude Code)\n"
    assert records(tmp_path) == []


@pytest.mark.parametrize(
    ("env", "method", "status"),
    [({}, "none", 1), ({"ANTHROPIC_API_KEY": "k"}, "api_key", 0), ({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, "oauth_token", 0)],
)
def test_auth_status_knows_a_credential_of_the_environment(
    env: dict[str, str], method: str, status: int, program: Path
) -> None:
    played = run(program, argv=["auth", "status"], env=env)

    said = json.loads(played.stdout)
    assert (said["authMethod"], said["loggedIn"], played.returncode) == (method, status == 0, status)
