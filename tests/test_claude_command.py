"""A child gets nothing of a request on its command line, and of the environment only what is listed."""

import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from ocp_trio.claude.command import child_environment, claude_command

SECRETS = {
    "ANTHROPIC_API_KEY": "a",
    "ANTHROPIC_AUTH_TOKEN": "a",
    "ANTHROPIC_BASE_URL": "a",
    "ANTHROPIC_MODEL": "a",
    "PROXY_API_KEY": "a",
    "OCP_ADMIN_KEY": "a",
    "OPENAI_API_KEY": "a",
    "AWS_SECRET_ACCESS_KEY": "a",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "1",
    "CLAUDE_BIN": "a",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1",
    "MAX_THINKING_TOKENS": "1",
    "LD_PRELOAD": "a",
    "NODE_OPTIONS": "a",
    "PYTHONPATH": "a",
    "PATHOLOGY": "a",
    "path": "a",
}
PASSED = {
    "PATH": "/usr/bin",
    "HOME": "/home/user",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_TIME": "C",
    "TZ": "UTC",
    "TMPDIR": "/tmp",
    "XDG_CONFIG_HOME": "/home/user/.config",
    "HTTPS_PROXY": "http://127.0.0.1:8080",
    "https_proxy": "http://127.0.0.1:8080",
    "NO_PROXY": "localhost",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem",
    "NODE_EXTRA_CA_CERTS": "/etc/ssl/extra.pem",
    "CLAUDE_CONFIG_DIR": "/home/user/.claude",
    "CLAUDE_CODE_OAUTH_TOKEN": "t",
}
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "ENABLE_TOOL_SEARCH": "false",
    "CLAUDE_CODE_TOTAL_TOKENS_REMINDER": "off",
    "MCP_TOOL_TIMEOUT": "86400000",
    "MAX_MCP_OUTPUT_TOKENS": "1000000",
    "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY": "1000",
}


def options(command: list[str]) -> list[str]:
    """Return the options that depend on the settings."""
    prefixes = ("--tools", "--allowedTools", "--mcp-config", "--setting-sources")
    return [word for word in command if word.startswith(prefixes)]


def test_the_command_is_the_same_for_every_request() -> None:
    assert claude_command("/usr/bin/claude") == [
        *("/usr/bin/claude", "-p"),
        *("--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--system-prompt", "", "--no-session-persistence", "--strict-mcp-config"),
        *("--disable-slash-commands", "--setting-sources=", "--tools=", "--allowedTools=mcp__client"),
    ]


def test_named_tools_exist_and_may_run_and_no_others_exist() -> None:
    rules = ["Bash(git log:*)", "Bash(git diff:*)", "Read"]

    assert options(claude_command("/usr/bin/claude", allowed_tools=rules)) == [
        "--setting-sources=",
        "--tools=Bash,Read",
        "--allowedTools=mcp__client,Bash(git log:*),Bash(git diff:*),Read",
    ]


def test_tools_of_mcp_servers_are_allowed_and_exist_by_themselves() -> None:
    rules = ["mcp__files", "mcp__web__fetch"]

    command = claude_command("/usr/bin/claude", allowed_tools=rules, mcp_config="/etc/mcp.json")

    assert options(command) == [
        "--setting-sources=",
        "--tools=",
        "--allowedTools=mcp__client,mcp__files,mcp__web__fetch",
        "--mcp-config=/etc/mcp.json",
    ]


def test_setting_sources_are_passed_on() -> None:
    command = claude_command("/usr/bin/claude", setting_sources="user,project")

    assert options(command) == ["--setting-sources=user,project", "--tools=", "--allowedTools=mcp__client"]


def test_no_path_depends_on_where_the_child_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    command = claude_command("bin/claude", mcp_config="mcp.json")

    assert (command[0], command[-1]) == (f"{tmp_path}/bin/claude", f"--mcp-config={tmp_path}/mcp.json")


def test_only_listed_names_reach_the_child() -> None:
    assert child_environment({**SECRETS, **PASSED}) == PASSED | QUIET


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_MAX_RETRIES"])
def test_a_name_that_the_operator_lets_through_reaches_it(name: str) -> None:
    environment = child_environment({**SECRETS, **PASSED, name: "let through"}, also=[name])

    assert environment == PASSED | QUIET | {name: "let through"}


def test_what_we_set_can_be_set_otherwise_or_left_unset() -> None:
    parent = {**PASSED, "DISABLE_TELEMETRY": "0"}

    environment = child_environment(parent, also=["DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"])

    assert environment["DISABLE_TELEMETRY"] == "0"
    assert "DISABLE_AUTOUPDATER" not in environment


@pytest.mark.parametrize("parent", [{}, {"HOME": ""}])
def test_home_is_always_set(parent: dict[str, str]) -> None:
    environment = child_environment(parent)

    assert environment["HOME"] == pwd.getpwuid(os.getuid()).pw_dir
    assert environment["PATH"] == os.defpath


def test_home_is_set_even_for_a_user_whom_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> SimpleNamespace:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)

    assert child_environment({})["HOME"] == "/"


def test_temporary_files_stay_in_a_folder_of_their_own() -> None:
    assert child_environment(PASSED, temporary_folder="/tmp/own")["CLAUDE_CODE_TMPDIR"] == "/tmp/own"
