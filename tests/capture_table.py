"""What a client of a chat completion should see of each capture: the decoder's independent specification.

Each entry is about the first real answer of its capture. Deltas and the assistant line of one block count once; texts
of several messages are joined by an empty line; errors that the CLI puts into words are no text. An answer ends at a
token limit or a refusal, so its usage is that of the messages up to there; elsewhere it is that of the result line.
What was streamed of a cut message stands: text that then does not begin with it fails the answer as ``restart``.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Finish: TypeAlias = Literal["stop", "length", "content_filter", "tool_calls"]
Failure: TypeAlias = Literal[
    "auth", "rate_limit", "usage_limit", "overloaded", "context", "model", "invalid", "server", "incomplete", "restart"
]
Tokens: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class Expected:
    """The first answer of a capture."""

    text: str
    """Visible text, as far as it came."""
    thinking: str
    """Reasoning, in deltas or whole."""
    finish: Finish | None
    error: Failure | None
    """Exactly one of ``finish`` and ``error`` is set."""
    usage: Tokens | None
    """Input, output, cache read and cache write tokens; None with an error."""
    acks: int
    """Empty results of injected history before the answer."""


def answer(
    text: str, *, thinking: str = "", finish: Finish = "stop", usage: Tokens = (101, 44, 303, 202), acks: int = 0
) -> Expected:
    return Expected(text, thinking, finish, None, usage, acks)


def failed(error: Failure, text: str = "", *, acks: int = 0) -> Expected:
    return Expected(text, "", None, error, None, acks)


HELLO = "Hello from the mock API. This is a plain answer in several deltas."
THOUGHT = "First I consider the question. Then I decide on the answer."
CUT = "Partial answer before the failure. "
EARLY = "Answer that stops early"
CALL = "Let me use a tool. "
WORDS = "".join(f"w{n} " for n in range(21))
TWO_ROUNDS = (202, 99, 606, 404)
SHORT = (101, 32, 303, 202)

PLAIN = answer(HELLO)
ECHO = answer("turn=1 roles=user,system")
TOOL_ROUND = answer(f"{CALL}\n\nThe tool has run. Done.", usage=TWO_ROUNDS)
LIMITED = answer(EARLY, finish="length", usage=SHORT)
RESTARTED = failed("restart", CUT)
NOTHING = failed("incomplete")
LONG_ECHO = "turn=1 roles=user,system,assistant,user,system"
NO_HELP = answer("/help isn't available in this environment.", usage=(0, 0, 0, 0))
KILLED = failed("incomplete", WORDS)
KILLED_IN_TOOL = failed("incomplete", CALL)
RATE_LIMITED = failed("rate_limit")
BROKEN = failed("server")

# One of them, 11-output-format-json, has its text in the result line only.
PLAIN_CAPTURES = """
01-plain 01-plain-partial 01-plain-partial-bare 01-plain-partial-lean 04-slow_first-20s
09-stdin-pipe-left-open-text-mode 09-stream-json-end_session 09-stream-json-idle-after-result-then-SIGTERM
10-messages-queued-while-busy 11-append-system-prompt 11-betas 11-cwd-missing-CLAUDE.md-probe 11-effort-invalid
11-effort-low 11-env-DISABLE_THINKING 11-isolation-LEAN 11-isolation-bare 11-isolation-bare+LEAN
11-isolation-default 11-isolation-restricted 11-isolation-safe-mode 11-isolation-setting-sources-none
11-isolation-strict-mcp 11-isolation-tools-none+system-prompt 11-max-thinking-tokens-0-haiku45 11-max-turns-0
11-mcp-config-server-missing 11-model-alias-haiku 11-model-alias-sonnet 11-model-full-name-old 11-model-unknown-name
11-output-format-json 11-restricted 11-safe-mode 11-session-id-given 11-system-plus-append 11-system-prompt-empty
11-thinking-disabled 11-thinking-disabled-haiku45 12-auth-token-env 12-home-not-writable
12-made-up-oauth-ratelimit-warning 12-made-up-oauth-token-env 12-no-HOME-at-all 12-temp-files-CLAUDE_CODE_TMPDIR
12-temp-files-TMPDIR 12-temp-files-none-bare 13-argv-prompt-100000 13-argv-prompt-131000 13-argv-prompt-131071
13-at-mention-argv-DISABLE_ATTACHMENTS 13-at-mention-argv-DISABLE_FILE_MENTIONS 13-at-mention-argv-bare
13-at-mention-argv-text-mode 13-nul-free-argv-special-chars 13-prompt-starting-with-dash
13-slash-path-argv-text-mode 13-slash-unknown-argv-text-mode 13-stdin-text-invalid-utf8
13-stdin-text-plus-argv-prompt 13-stdin-text-utf8-bom-crlf
""".split()  # noqa: SIM905 - one name a line would fill two screens

EXPECTED: dict[str, Expected] = {
    **dict.fromkeys(PLAIN_CAPTURES, PLAIN),
    "02-thinking": answer("The answer is 42.", thinking=THOUGHT),
    "02-thinking-display-omitted": answer("The answer is 42.", thinking=THOUGHT),
    "02-thinking-display-summarized": answer("The answer is 42.", thinking=THOUGHT),
    "02-thinking-partial": answer("The answer is 42.", thinking=THOUGHT),
    "02-thinking-redacted-partial": answer("Answer after redacted thinking."),
    "03-tool-bash": TOOL_ROUND,
    "03-tool-bash-150s-partial": TOOL_ROUND,
    "03-tool-bash-40s-partial": TOOL_ROUND,
    "03-tool-bash-partial": TOOL_ROUND,
    "03-tool-bash-sleep-blocked-partial": TOOL_ROUND,
    "03-tool-read-partial": TOOL_ROUND,
    "03-two-tools-partial": answer("Both tools have run.", usage=TWO_ROUNDS),
    "04-no-first-byte-default-env": NOTHING,
    "04-slow_hdr-20s": answer("late answer"),
    "04-slow_mid-20s": answer("Before the gap. After the gap."),
    "04-slow_mid_ping-20s": answer("Before the gap. After the gap."),
    "04-slow_ping-130s": answer("After the gap."),
    "04-slow_ping-20s": answer("After the gap."),
    "04-stall-mid-default-env": RESTARTED,
    "04-stall-mid-idle_timeout-60s": RESTARTED,
    "05-drop-fin-always": RESTARTED,
    "05-drop-rst-once": RESTARTED,
    "05-env-401-max_retries2": failed("auth"),
    "05-env-500-max_retries0": BROKEN,
    "05-env-connrefused-max_retries1": BROKEN,
    "05-env-drop-fin-always-max_retries0": RESTARTED,
    "05-env-drop-fin-always-max_retries1": RESTARTED,
    "05-env-err-mid-no-nonstreaming-fallback-once": failed("overloaded", CUT),
    "05-env-stall-mid-idle_timeout5s": failed("incomplete", CUT),
    "05-err-400": failed("context"),
    "05-err-400-generic": failed("invalid"),
    "05-err-402": failed("usage_limit"),
    "05-err-404": failed("model"),
    "05-err-413": failed("invalid"),
    "05-err-429-always": RATE_LIMITED,
    "05-err-429-ra-always": RATE_LIMITED,
    "05-err-429-ra2-twice-then-ok": answer("Recovered on attempt 3."),
    "05-err-429-retry-after-3600": RATE_LIMITED,
    "05-err-429-x-should-retry-false": RATE_LIMITED,
    "05-err-500-twice-then-ok": answer("Recovered on attempt 3."),
    "05-err-500-x-should-retry-false": BROKEN,
    "05-err-503-html-max_retries0": BROKEN,
    "05-err-503-html-once": answer("Recovered on attempt 2."),
    "05-err-529-always": failed("overloaded"),
    "05-err-529-twice-then-ok": answer("Recovered on attempt 3."),
    "05-err-mid-empty-once": answer("Recovered on attempt 2.", usage=(202, 45, 606, 404)),
    "05-err-mid-overloaded-once": RESTARTED,
    "05-err-mid-overloaded-partialtext-always": RESTARTED,
    "05-fallback-model-529": answer("Recovered on attempt 4."),
    "05-truncated-once": RESTARTED,
    "06-many-5000-deltas-nopartial": answer("".join(f"tok{n:04d} " for n in range(5000))),
    "06-surrogate-split": answer("\N{GRINNING FACE}"),
    "07-empty-content": answer("", usage=(202, 2, 606, 404)),
    "07-env-max_output_tokens-100": LIMITED,
    "07-env-refusal-no-retry": answer(EARLY, finish="content_filter", usage=SHORT),
    # A limit of the operator's ended the turn between two rounds: what came is cut short, and a retry would be, too.
    "07-max-turns-1-partial": answer(CALL, finish="length", usage=(101, 55, 303, 202)),
    "07-stop-context_window_exceeded": LIMITED,
    "07-stop-max_tokens": LIMITED,
    "07-stop-max_tokens-once": LIMITED,
    "07-stop-pause_turn": answer(EARLY, usage=SHORT),
    "07-stop-refusal": answer(EARLY, finish="content_filter", usage=SHORT),
    "07-stop-refusal-empty": answer("", finish="content_filter", usage=(101, 2, 303, 202)),
    "07-stop-stop_sequence": answer(EARLY, usage=SHORT),
    "07-tool-bash-nonreadonly-not-allowed-partial": TOOL_ROUND,
    "07-tool-denied-default-mode-partial": TOOL_ROUND,
    "07-tool-denied-partial": TOOL_ROUND,
    "07-tool-not-available-partial": TOOL_ROUND,
    "09-SIGINT-during-api-retry-wait": BROKEN,
    "09-SIGINT-mid-stream": failed("server", WORDS),
    "09-SIGINT-twice-mid-stream": failed("server", WORDS),
    "09-SIGKILL-during-bash-tool": KILLED_IN_TOOL,
    "09-SIGKILL-mid-stream": KILLED,
    "09-SIGTERM-during-api-retry-wait": NOTHING,
    "09-SIGTERM-during-bash-tool": KILLED_IN_TOOL,
    "09-SIGTERM-mid-stream": KILLED,
    "09-killpg-SIGKILL-own-session-during-bash-tool": KILLED_IN_TOOL,
    "09-stdout-reader-closes-during-bash-tool": KILLED_IN_TOOL,
    "09-stdout-reader-closes-mid-stream": KILLED,
    "09-stdout-reader-closes-mid-stream-nopartial": KILLED_IN_TOOL,
    "09-stdout-reader-closes-stream-ends-5s-later": KILLED,
    "09-stdout-reader-closes-then-SIGTERM": KILLED,
    "09-stream-json-stdin-closed-mid-turn": failed("incomplete", "".join(f"w{n} " for n in range(177))),
    "10-apply_flag_settings-env-max_output_tokens": ECHO,
    "10-apply_flag_settings-model": answer("turn=1 roles=user"),
    "10-apply_flag_settings-model-unknown": ECHO,
    "10-assistant-history-injection": answer("turn=1 roles=assistant,user,system", acks=1),
    "10-bad-json-line": NOTHING,
    "10-can_use_tool-over-stdio-deny": TOOL_ROUND,
    "10-control-misc": ECHO,
    "10-eof-without-message": NOTHING,
    "10-image-base64": ECHO,
    "10-image-invalid": ECHO,
    "10-initialize-after-first-turn": ECHO,
    "10-initialize-systemPrompt-over-flag": ECHO,
    "10-initialize-twice": ECHO,
    "10-initialize-twice-snapshot-off": ECHO,
    "10-replay-user-messages": ECHO,
    "10-set_model-before-first-turn": answer("turn=1 roles=user"),
    "10-slash-clear-between-turns": ECHO,
    "10-slash-clear-between-turns-disabled": ECHO,
    "10-unknown-type-and-keepalive-lines": ECHO,
    "11-dangerously-skip-permissions-as-root": NOTHING,
    "11-haiku45-default-thinking": answer("The answer is 42.", thinking=THOUGHT),
    # Its last stop reason is tool_use, of a tool of the CLI: a client that sees no call must not be told of one.
    "11-json-schema": answer(CALL, usage=(101, 55, 303, 202)),
    "11-json-schema-model-answers-text-only": answer(f"{HELLO}\n\n{HELLO}", usage=(202, 88, 606, 404)),
    "11-max-budget-usd-exceeded": failed("server", CALL),
    "11-mcp-config-bad-json": NOTHING,
    "11-prompt-swallowed-by-variadic-flag": NOTHING,
    "11-resume-unknown-session": BROKEN,
    "11-session-id-not-uuid": NOTHING,
    "11-stream-json-without-verbose": NOTHING,
    "11-unknown-flag": NOTHING,
    "12-made-up-oauth-401": failed("auth"),
    "12-made-up-oauth-ratelimit-rejected": failed("usage_limit"),
    "12-no-credentials": failed("auth"),
    "13-long-history-720KB-200k-model": answer(
        "turn=1 roles=user,assistant,user,assistant,user,assistant,user", acks=3
    ),
    "13-long-history-720KB-200k-model-DISABLE_AUTO_COMPACT": failed("context", acks=3),
    "13-long-history-720KB-200k-model-DISABLE_COMPACT": failed("context", acks=3),
    "13-prompt-empty": NOTHING,
    "13-prompt-spaces": NOTHING,
    "13-slash-and-at-prompts-client_composed": ECHO,
    # A command that the CLI answers itself: no API round, but not empty either.
    "13-slash-and-at-prompts-default": NO_HELP,
    "13-slash-and-at-prompts-disable-slash": NO_HELP,
    "13-slash-argv-text-mode": NO_HELP,
    "14-resume-handwritten-by-path": answer(LONG_ECHO),
    "14-session-id-reused": NOTHING,
    "14-session-turn1": ECHO,
    "14-session-turn2-resume": answer("turn=2 roles=user,system,assistant,user"),
    "14-stdin-history-assistant-first": answer("turn=1 roles=assistant,user,system"),
    "14-stdin-history-client_composed": answer(LONG_ECHO, acks=1),
    "14-stdin-history-no-sleep-after-assistant": answer(LONG_ECHO, acks=1),
    "14-stdin-history-two-rounds": answer("turn=1 roles=user,system,assistant,user,assistant,user,system", acks=2),
    "14-stdin-history-waiting": answer(LONG_ECHO, acks=1),
    "14-stdin-history-with-tool-use": answer(LONG_ECHO, acks=2),
    "15-sdk-mcp-tool-held-3s": TOOL_ROUND,
    "15-sdk-mcp-two-tools": answer("Both tools have run.", usage=TWO_ROUNDS),
}
