"""Read a command line as the `claude` CLI does, as far as a proxy may use it."""

import json
import os
import re
from collections.abc import Sequence

from fake_lines import VERSION

SWITCHES = {
    "-p",
    "--print",
    "--verbose",
    "--include-partial-messages",
    "--no-session-persistence",
    "--strict-mcp-config",
    "--disable-slash-commands",
}
TAKES_ONE = {
    "--append-system-prompt",
    "--effort",
    "--fallback-model",
    "--input-format",
    "--max-turns",
    "--model",
    "--output-format",
    "--permission-mode",
    "--permission-prompt-tool",
    "--setting-sources",
    "--settings",
    "--system-prompt",
}
TAKES_MANY = {"--add-dir", "--allowedTools", "--allowed-tools", "--disallowedTools", "--mcp-config", "--tools"}


def answer(argv: Sequence[str]) -> tuple[str, int] | None:
    """Return output and exit status of a command that starts no conversation; None for any other."""
    if list(argv) in (["--version"], ["-v"]):
        return f"{VERSION} (Claude Code)\n", 0
    if list(argv) == ["auth", "status"]:
        login = _login()
        return json.dumps(login, indent=2) + "\n", 0 if login["loggedIn"] else 1
    return None


def _login() -> dict[str, object]:
    method = "none"
    if os.environ.get("CLAUDE_CODE_OAUTH_TOKEN"):
        method = "oauth_token"
    elif os.environ.get("ANTHROPIC_API_KEY"):
        method = "api_key"
    home = os.environ.get("CLAUDE_CONFIG_DIR") or f"{os.environ.get('HOME', '')}/.claude"
    status = {
        "loggedIn": method != "none",
        "authMethod": method,
        "apiProvider": "firstParty",
        "analyticsDisabled": True,
        "projectsDirectory": f"{home}/projects",
        "configDirectory": home,
        "loginExpiresAt": None,
        "consoleProfileSignInOffered": True,
    }
    return status | ({"apiKeySource": "ANTHROPIC_API_KEY"} if method == "api_key" else {})


def _parse(argv: Sequence[str]) -> tuple[dict[str, str], list[str], str | None]:
    """Return options, positional words, and the first unknown option."""
    options: dict[str, str] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            words += rest
            break
        if not word.startswith("-"):
            words.append(word)
        elif name in SWITCHES:
            options[name] = ""
        elif name in TAKES_ONE:
            options[name] = value if equals or not rest else rest.pop(0)
        elif name in TAKES_MANY:
            # Such an option swallows every word up to the next option.
            while rest and not rest[0].startswith("-"):
                rest.pop(0)
        else:
            return options, words, word
    return options, words, None


def complaint(argv: Sequence[str]) -> str | None:
    """Return what the CLI prints on stderr before it exits with 1; None if it accepts the command."""
    options, words, unknown = _parse(argv)
    if unknown:
        return f"error: unknown option '{unknown}'\n"
    if options.get("--input-format") == "stream-json" and options.get("--output-format") != "stream-json":
        return "Error: --input-format=stream-json requires output-format=stream-json.\n"
    if options.get("--output-format") == "stream-json" and "--verbose" not in options:
        return "Error: When using --print, --output-format=stream-json requires --verbose\n"
    if options.get("--input-format") != "stream-json":
        return "Error: Input must be provided either through stdin or as a prompt argument when using --print\n"
    if words or "--include-partial-messages" not in options or not {"-p", "--print"} & options.keys():
        return "fake claude: only -p with partial messages and prompts on stdin is played\n"
    return None


def parsing_error(line: str) -> str:
    """Return what the CLI prints on stderr before it exits with 1 for an input line that is not JSON."""
    begun = re.match(r'\s*\{\s*"type"\s*:\s*"(\w+)"', line)
    kind = begun[1] if begun else "unknown"
    return f"Error parsing streaming input line (type={kind}, {len(line)} chars): SyntaxError\n"
