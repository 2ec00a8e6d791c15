"""The child's command line and environment: the same for every request, so nothing of a request stands in either."""

import os
import pwd
from collections.abc import Iterable, Mapping
from pathlib import Path

from ocp_trio.claude.tool_names import SERVER

__all__ = ["child_environment", "claude_command"]

_PASSED = frozenset(
    {
        "PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "TMPDIR",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
        "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN",
    }
)  # fmt: skip
_PASSED_PREFIXES = ("LC_", "XDG_")

_SET = {
    # A server's child updates nothing and calls nobody but the API.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    # A refusal ends the answer; without this the CLI asks the model once more.
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    # Else a placeholder stands beside the caller's tools, and many of them are only found by searching.
    "ENABLE_TOOL_SEARCH": "false",
    # Else every result of a tool ends with a reminder of the tokens that are left, for some models.
    "CLAUDE_CODE_TOTAL_TOKENS_REMINDER": "off",
    # A day: how long a call waits for its result is decided here, not by the CLI.
    "MCP_TOOL_TIMEOUT": "86400000",
    # Else a result of more than about 100 kB goes into a file.
    "MAX_MCP_OUTPUT_TOKENS": "1000000",
    # All calls of a message come at once; by default the eleventh waits for the result of another.
    "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY": "1000",
}


def claude_command(
    binary: str,
    *,
    allowed_tools: Iterable[str] = (),
    mcp_config: str | None = None,
    setting_sources: str = "",
) -> list[str]:
    """Return program and arguments.

    By default the child has no tools, hooks, CLAUDE.md files, MCP servers or slash commands: nothing of the machine is
    within a caller's reach, and an API request is 1.9 KB instead of 49 KB (CLI 2.1.332).

    Args:
        binary: Path of the CLI.
        allowed_tools: Permission rules, such as ``Read``, ``Bash(git:*)`` or ``mcp__SERVER``. The tools they name exist
            and run without asking, within their rule; no others exist.
        mcp_config: Path of an MCP configuration.
        setting_sources: Which settings files are read: any of ``user,project,local``.
    """
    rules = tuple(allowed_tools)
    command = [
        # The child runs in a folder of its own: no path may depend on where this process runs.
        str(Path(binary).absolute()), "-p",
        "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
        "--system-prompt", "",
        "--no-session-persistence", "--strict-mcp-config", "--disable-slash-commands",
        f"--setting-sources={setting_sources}",
        # A rule alone would leave all tools in place, and those that only read need no permission.
        f"--tools={','.join(_built_in_tools(rules))}",
        # The caller's tools run without asking: they run at the caller's.
        f"--allowedTools={','.join((f'mcp__{SERVER}', *rules))}",
    ]  # fmt: skip
    if mcp_config:
        command.append(f"--mcp-config={Path(mcp_config).absolute()}")
    return command


def _built_in_tools(rules: Iterable[str]) -> list[str]:
    """Return the tools that the rules are about, each once; those of MCP servers exist by themselves."""
    names = dict.fromkeys(rule.partition("(")[0].strip() for rule in rules)
    return [name for name in names if not name.startswith("mcp__")]


def child_environment(
    parent: Mapping[str, str], *, also: Iterable[str] = (), temporary_folder: str | None = None
) -> dict[str, str]:
    """Return the child's whole environment: an allow-list of the parent's, with HOME always set.

    Without HOME the CLI falls back to the passwd entry's and writes there.

    Args:
        parent: Usually `os.environ`.
        also: Names that the operator lets through, such as ``ANTHROPIC_BASE_URL``. A key for the API passes only so:
            a subscription must not be billed by key unasked.
        temporary_folder: Where the child keeps its temporary files.
    """
    named = frozenset(also)
    environment = {
        name: value
        for name, value in parent.items()
        if name in _PASSED or name in named or name.startswith(_PASSED_PREFIXES)
    }
    environment["HOME"] = environment.get("HOME") or _passwd_home()
    environment.setdefault("PATH", os.defpath)
    if temporary_folder:
        environment["CLAUDE_CODE_TMPDIR"] = temporary_folder
    return environment | {name: value for name, value in _SET.items() if name not in named}


def _passwd_home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        # Nobody's home, as in a container that runs under a made-up user id.
        return "/"
