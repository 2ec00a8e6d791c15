"""A command talks to the server that is meant, and shows it the key that is meant for it, and no other server any."""

from pathlib import Path

import pytest
from commands import run

from ocp_trio.cli.address import parse_address
from ocp_trio.cli.failures import NotUsable
from ocp_trio.cli.target import key_from

HERE = parse_address("127.0.0.1:3456")


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({}, None),
        ({"OCP_ADMIN_KEY": " a ", "PROXY_API_KEY": "b", "OPENAI_API_KEY": "ocp_c"}, "a"),
        ({"OCP_ADMIN_KEY": "", "PROXY_API_KEY": "b", "OPENAI_API_KEY": "ocp_c"}, "b"),
        ({"OPENAI_API_KEY": "ocp_c"}, "ocp_c"),
        # A key for OpenAI itself goes nowhere else.
        ({"OPENAI_API_KEY": "sk-d"}, None),
        ({"OPENAI_API_KEY": "sk-d", "OPENAI_BASE_URL": "https://api.example.com/v1"}, None),
        ({"OPENAI_API_KEY": "sk-d", "OPENAI_BASE_URL": "not an address"}, None),
        ({"OPENAI_API_KEY": "shared", "OPENAI_BASE_URL": "http://127.0.0.1:3456/v1/"}, "shared"),
    ],
)
def test_the_key_is_the_first_that_is_set_and_meant_for_this_server(
    environment: dict[str, str], key: str | None
) -> None:
    assert key_from(environment, HERE, None) == key


def test_a_client_s_key_is_never_the_administrators() -> None:
    assert key_from({"OCP_ADMIN_KEY": "a"}, HERE, None, may_be_admin=False) is None


def test_a_key_file_goes_before_the_environment(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of the file\n".replace(" ", "-"))

    assert key_from({"OCP_ADMIN_KEY": "a"}, HERE, tmp_path / "key") == "of-the-file"


@pytest.mark.parametrize("content", [b"", b"a b", b"a\nb", "schlüssel".encode(), b"\xff"])
def test_what_no_header_can_hold_is_refused_and_not_repeated(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(content)

    with pytest.raises(NotUsable, match=r"is no key|holds no text") as caught:
        key_from({}, HERE, tmp_path / "key")

    assert "schl" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_key_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotUsable, match=r"the key file '.*' cannot be read: "):
        key_from({}, HERE, tmp_path / name)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"CLAUDE_PROXY_PORT": "x"}, "ocp-trio: CLAUDE_PROXY_PORT='x': a whole number is expected\n"),
        (
            {"CLAUDE_PROXY_PORT": "0"},
            "ocp-trio: CLAUDE_PROXY_PORT=0 is any port: give the server's address with --url\n",
        ),
        ({"OCP_URL": "a..b"}, "ocp-trio: 'a..b' is no address of a server: 'a..b' is no host name\n"),
        ({"OCP_ADMIN_KEY": "a b"}, "ocp-trio: the key in OCP_ADMIN_KEY is no key: "),
    ],
)
def test_an_environment_that_names_no_server_is_told_at_once(environment: dict[str, str], message: str) -> None:
    done = run("models", **environment)

    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(message)
