"""What a client is told to use has been tried: the server answers, the key is right, the models are there."""

import json
import os
import subprocess
from collections.abc import Iterator

import fake_program
import pytest
from commands import Done, open_impostor, run
from server_process import Server, shared_server

from ocp_trio.cli.models import Model
from ocp_trio.cli.snippets import CLIENTS, Connection

KEY = "made-up"
HEALTH = {"status": "ok", "version": "0", "authMode": "none"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = fake_program.install(tmp_path_factory.mktemp("fake"))
    with shared_server(program, CLAUDE_AUTH_MODE="shared", PROXY_API_KEY=KEY) as server:
        yield server


def connect(server: Server, *arguments: str, key: str | None = KEY) -> Done:
    return run("connect", f"127.0.0.1:{server.port}", *arguments, PROXY_API_KEY=key)


def test_each_client_has_a_snippet_with_the_file_it_belongs_into(server: Server) -> None:
    done = connect(server)

    assert done.status == 0
    heads = [line.split("  ", 1) for line in done.out.splitlines() if line.partition("  ")[0] in CLIENTS]
    assert [name for name, _ in heads] == list(CLIENTS)
    assert dict(heads)["opencode"] == "~/.config/opencode/opencode.json"
    assert f"Base URL       {server.url}/v1\n" in done.out
    assert done.err == "put your key where YOUR_KEY stands, or print it with --show-key\n"
    assert KEY not in done.out


def test_as_json_it_is_what_was_found_and_each_snippet(server: Server) -> None:
    told = connect(server, "--json").json

    assert list(told) == ["baseUrl", "keyNeeded", "model", "models", "snippets"]
    assert (told["baseUrl"], told["keyNeeded"]) == (f"{server.url}/v1", True)
    assert "sonnet" in told["model"]
    assert told["model"] in told["models"]
    assert list(told["snippets"]) == list(CLIENTS)
    opencode = json.loads(told["snippets"]["opencode"]["text"])
    provider = opencode["provider"]["ocp-trio"]
    assert provider["options"] == {"baseURL": f"{server.url}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    assert list(provider["models"]) == told["models"]
    openclaw = json.loads(told["snippets"]["openclaw"]["text"])
    assert [each["id"] for each in openclaw["models"]["providers"]["ocp-trio"]["models"]] == told["models"]
    assert openclaw["agents"]["defaults"]["model"]["primary"] == f"ocp-trio/{told['model']}"


def test_a_shell_can_evaluate_its_snippet(server: Server) -> None:
    done = connect(server, "--for", "shell", "--show-key")

    script = done.out + '\nprintf "%s %s" "$OPENAI_BASE_URL" "$OPENAI_API_KEY"'
    shell = subprocess.run(["sh", "-c", script], env={"PATH": os.defpath}, capture_output=True, text=True, check=True)
    assert shell.stdout == f"{server.url}/v1 {KEY}"
    assert done.err == ""


def test_a_model_is_named_by_its_id_or_refused(server: Server) -> None:
    done = connect(server, "--for", "aider", "--model", "claude-haiku-4-5")
    refused = connect(server, "--model", "gpt-4")

    assert 'model: "openai/claude-haiku-4-5"\n' in done.out
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("ocp-trio: the model 'gpt-4' is not served there, but claude-")


def test_a_server_that_wants_a_key_is_not_connected_to_without_the_right_one(server: Server) -> None:
    without, wrong = connect(server, key=None), connect(server, key="wrong")
    admin = run("connect", server.url, OCP_ADMIN_KEY=KEY)

    for done in (without, admin):
        assert done == (
            4,
            "",
            "ocp-trio: this server wants a key: set OPENAI_API_KEY beside OPENAI_BASE_URL, or use --key-file\n",
        )
    assert (wrong.status, wrong.out) == (4, "")
    assert wrong.err.startswith("ocp-trio: the API key is wrong; ")


def test_a_server_that_wants_no_key_is_shown_none() -> None:
    models = {"data": [{"id": "first"}, {"id": "second"}]}
    with open_impostor({"/health": HEALTH, "/v1/models": models}) as url:
        done = run("connect", url, "--json", "--show-key", PROXY_API_KEY=KEY)

    assert done.json["model"] == "first"
    assert done.json["keyNeeded"] is False
    assert "export OPENAI_API_KEY=none" in done.json["snippets"]["shell"]["text"]
    assert KEY not in done.out


@pytest.mark.parametrize(
    ("answers", "status", "told"),
    [
        ({"": {"status": "ok"}}, 3, "answers, but not as this server does"),
        ({"/health": HEALTH, "": {"data": []}}, 1, "serves no model"),
    ],
)
def test_another_server_or_one_without_models_is_told_from_a_good_one(
    answers: dict[str, object], status: int, told: str
) -> None:
    with open_impostor(answers) as url:
        done = run("connect", url)

    assert (done.status, done.out) == (status, "")
    assert told in done.err


@pytest.mark.parametrize("host", ["", "a..b", "http://[bad", "host:99999", "ftp://x"])
def test_what_is_no_host_is_a_wrong_usage(host: str) -> None:
    done = run("connect", host)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"ocp-trio: {host!r} is no address of a server: ")


HOSTILE = "a'b\"c\\d $(touch pwned) `x`: {#} \x1b[31m"


def snippet(client: str) -> str:
    model = Model(HOSTILE, "x", 1000, 100)
    connection = Connection(base_url="http://h/v1", needs_key=True, key=HOSTILE, model=model, models=(model,))
    return CLIENTS[client](connection).text


def test_nothing_that_a_server_says_leaves_its_quotes() -> None:
    script = snippet("shell") + '\nprintf "%s" "$OPENAI_API_KEY"'
    shell = subprocess.run(["sh", "-c", script], env={"PATH": os.defpath}, capture_output=True, text=True, check=True)

    assert shell.stdout == HOSTILE
    assert json.loads(snippet("opencode"))["provider"]["ocp-trio"]["models"][HOSTILE]["name"] == HOSTILE
    assert json.loads(snippet("openclaw"))["models"]["providers"]["ocp-trio"]["models"][0]["id"] == HOSTILE
    for client in ("aider", "continue"):
        lines = snippet(client).splitlines()
        assert lines == [line for line in lines if line.isprintable()]
        assert json.loads(lines[-1].partition(": " if client == "aider" else "- ")[2])
    assert "\x1b" not in snippet("cline")


def test_in_fish_s_quotes_a_backslash_escapes_a_quote_and_itself() -> None:
    key_line = snippet("fish").splitlines()[1]

    assert key_line == "set -gx OPENAI_API_KEY 'a\\'b\"c\\\\d $(touch pwned) `x`: {#} \x1b[31m'"


def test_a_model_without_figures_has_none_in_a_snippet() -> None:
    model = Model("bare")
    connection = Connection(base_url="http://h/v1", needs_key=False, key=None, model=model, models=(model,))

    opencode, openclaw = (json.loads(CLIENTS[name](connection).text) for name in ("opencode", "openclaw"))

    assert opencode["provider"]["ocp-trio"]["models"] == {"bare": {"name": "bare"}}
    assert openclaw["models"]["providers"]["ocp-trio"]["models"] == [{"id": "bare", "name": "bare"}]
