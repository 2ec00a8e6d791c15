"""Write scripts for `fake_claude`: what one child does, step by step.

A test says what a child does as ``prompt(text("Hel", "lo"), success())``; each builder below is one step. A message
without a script is answered with the text "ok". What a turn does not close (block, message) `success` closes.
"""

import base64
import json
from pathlib import Path
from typing import Any, TypeAlias

Step: TypeAlias = list[Any]
Json: TypeAlias = Any  # whatever JSON can say


def prompt(*steps: Step, text: str = "hi") -> str:
    """Return a user message that carries ``steps``, whatever else it says."""
    if not steps:
        return text
    return f"{text} <<<{base64.urlsafe_b64encode(json.dumps(steps).encode()).decode()}>>>"


# The answer


def without_init() -> Step:
    """As the first step: print neither init nor status line for this turn."""
    return ["without_init"]


def text(*deltas: str) -> Step:
    """Print one text delta each, in an open text block of an open message (begun where there is none)."""
    return ["text", *deltas]


def thinking(*deltas: str) -> Step:
    """Print one thinking delta each, with its token estimate before it."""
    return ["thinking", *deltas]


def block_start(kind: str, name: str = "") -> Step:
    """Begin a block of ``kind`` (text, thinking, redacted_thinking, tool_use); one that is open ends first."""
    return ["block_start", kind, name]


def block_end(*, repeat: bool = True) -> Step:
    """End the block; ``repeat`` prints the assistant line with its whole content first."""
    return ["block_end", repeat]


def message_start() -> Step:
    """Begin a message without a block."""
    return ["message_start"]


def message_end(stop_reason: str = "end_turn", output_tokens: int = 44) -> Step:
    """End the message as the API does: ``message_delta`` with a stop reason, ``message_stop``."""
    return ["message_end", stop_reason, output_tokens]


def abandon(*, for_good: bool = False) -> Step:
    """Cut the message as after a lost connection; ``for_good`` where no further attempt follows."""
    return ["abandon", for_good]


def whole_message(text: str, *, parent_tool_use_id: str | None = None) -> Step:
    """Print a message that was not streamed: one assistant line. With a parent it is a subagent's."""
    return ["whole_message", text, parent_tool_use_id]


def tool_call(name: str, **arguments: Json) -> Step:
    """Print a tool_use block, its input in pieces of 12 characters."""
    return ["tool_call", name, arguments]


def client_call(name: str, **arguments: Json) -> Step:
    """Call a tool of the caller's."""
    return ["client_call", name, arguments]


def client_results(*steps: Step) -> Step:
    """End the message with ``tool_use``, take ``steps``, and wait for the results of the caller's tools."""
    return ["client_results", steps]


def input_json(*pieces: str) -> Step:
    """Print one input delta each in the open tool_use block."""
    return ["input_json", *pieces]


def tool_result(content: str, *, is_error: bool = False, early: bool = False) -> Step:
    """End the message with ``tool_use`` and print what the tool said; ``early`` prints it before that end."""
    return ["tool_result", content, is_error, early]


def burst(count: int, text: str = "word ", *, gap: float = 0) -> Step:
    """Print ``count`` equal text deltas, ``gap`` seconds apart; as fast as the pipe takes them if 0."""
    return ["burst", count, text, gap]


# Results


def success(*, usage: tuple[int, int, int, int] | None = None, text: str | None = None) -> Step:
    """Print the result line; usage is (input, output, cache read, cache write), by default that of its messages."""
    return ["success", usage, text]


def synthetic(
    text: str, *, error: str, status: int | None = None, stop_reason: str = "stop_sequence", **extra: Json
) -> Step:
    """Print the assistant line in which the CLI reports an error."""
    return ["synthetic", text, error, status, stop_reason, extra]


def failed_result(text: str, *, status: int | None = None, terminal_reason: str = "api_error", **extra: Json) -> Step:
    """Print the result of a failed turn: subtype success, is_error true."""
    return ["failed_result", text, status, terminal_reason, extra]


def api_error(
    text: str, *, error: str, status: int | None = None, terminal_reason: str = "api_error", **extra: Json
) -> Step:
    """Print a failed turn's two lines; ``extra`` (api_error, api_error_type) stands in both."""
    said = synthetic(text, error=error, status=status, **extra)
    return ["steps", [said, failed_result(text, status=status, terminal_reason=terminal_reason, **extra)]]


def error_result(subtype: str, *, terminal_reason: str, message: str = "it failed") -> Step:
    """Print a result of an error subtype: error_max_turns, error_during_execution ..."""
    return ["error_result", subtype, terminal_reason, message]


# Lines beside the answer


def status(value: str | None) -> Step:
    """Print a status line: requesting, compacting, or None after a compaction."""
    return ["status", value]


def retry(attempt: int = 1, *, status: int | None = None, error: str = "unknown") -> Step:
    """Say that the API is asked again; a status of None is a network failure."""
    return ["retry", attempt, status, error]


def ping() -> Step:
    """Pass a ping of the API on."""
    return ["ping"]


def tool_progress(seconds: int = 30) -> Step:
    """Print the heartbeat of a running tool."""
    return ["tool_progress", seconds]


def own_user_message(text: str) -> Step:
    """Print a user message that the CLI adds by itself before it asks the API again."""
    return ["own_user_message", text]


def rate_limit(status: str = "rejected", **info: Json) -> Step:
    """Print what a subscription's rate limit headers said; resetsAt is in seconds since the epoch."""
    return ["rate_limit", {"status": status, "isUsingOverage": False, **info}]


def line(**fields: Json) -> Step:
    """Print any JSON object as a line."""
    return ["line", fields]


# Bytes


def raw(data: bytes, times: int = 1) -> Step:
    """Print ``data``, as it is, ``times`` times."""
    return ["raw", base64.b64encode(data).decode(), times]


def stderr(data: bytes, times: int = 1) -> Step:
    """Write ``data`` to standard error ``times`` times."""
    return ["stderr", base64.b64encode(data).decode(), times]


def long_line(size: int) -> Step:
    """Print a line of an unknown type, ``size`` bytes long with its line feed."""
    return ["long_line", size]


def pieces(*steps: Step, size: int = 1, gap: float = 0) -> Step:
    """Print what ``steps`` print in writes of ``size`` bytes, ``gap`` seconds apart."""
    return ["pieces", steps, size, gap]


def close_stdout() -> Step:
    """Close standard output and go on."""
    return ["close_stdout"]


# Time


def sleep(seconds: float) -> Step:
    """Wait, answering control requests meanwhile."""
    return ["sleep", seconds]


def wait_for(path: Path) -> Step:
    """Wait until ``path`` exists, answering control requests meanwhile: a test's touch lets the child go on."""
    return ["wait_for", str(path)]


def hang(*, deaf: bool = False) -> Step:
    """Say nothing more; ``deaf``: read nothing more either, so control requests stay unanswered."""
    return ["hang", deaf]


def mark(name: str) -> Step:
    """Record that the script came this far."""
    return ["mark", name]


# Processes


def exits(status: int) -> Step:
    """Exit at once."""
    return ["exit", status]


def dies(signal_name: str) -> Step:
    """Die of a signal, such as SIGKILL or SIGSEGV."""
    return ["die", signal_name]


def ignore_sigterm() -> Step:
    """Record SIGTERM from now on, and carry on."""
    return ["ignore_sigterm"]


def linger() -> Step:
    """Stay alive after the end of stdin and after `end_session`, until a signal."""
    return ["linger"]


def grandchild(*, own_session: bool = False, holds_stdout: bool = False, ignores_sigterm: bool = False) -> Step:
    """Leave a sleeping process behind, in this process group unless it has a session of its own."""
    return ["grandchild", own_session, holds_stdout, ignores_sigterm]
