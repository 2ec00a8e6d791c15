"""Stand in for the `claude` CLI (2.1.332) and do exactly, and in exactly the order, what a test's script says.

It speaks stream-json only. The script travels inside the last user message (`fake_script.prompt`), so nothing that a
proxy does to arguments or environment can lose it. Nothing lives longer than `LIFETIME`, whatever a test forgets.
"""

import binascii
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import fake_argv
import fake_lines as lines
from fake_mcp import ToolClient
from fake_steps import LIFETIME
from fake_turn import Turn

READ_SIZE = 1 << 20
DEFAULT_SCRIPT = [["text", "ok"], ["success"]]


class InterruptedTurn(Exception):  # noqa: N818 - an outcome, not an error
    """The turn ends here: `interrupt`, `end_session` or SIGINT."""


class Journal:
    """What a run saw, one JSON line ``[kind, value]`` each, on disk before the run goes on."""

    def __init__(self, folder: str) -> None:
        path = f"{folder}/{time.monotonic_ns():020d}-{os.getpid()}.ndjson"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, kind: str, value: object) -> None:
        os.write(self._fd, json.dumps([kind, value]).encode() + b"\n")


class FakeClaude:
    """One run of the CLI: its standard streams, its signals, its queue of user messages."""

    def __init__(self, folder: str, argv: Sequence[str]) -> None:
        self.journal = Journal(folder)
        self.model = lines.MODEL
        self.sink: bytearray | None = None  # collects what the step `pieces` then prints
        self.deaf = True  # until it reads its first line
        self.ignores_sigterm = False
        self.lingers = False
        self.messages = 0  # begun so far, in all turns
        self.client: ToolClient | None = None  # of the server with the caller's tools
        self._printed = 0
        self._unread = False
        self._half_line: list[bytes] = []
        self._lines: list[bytes] = []
        self._eof = False
        self._queue: list[dict[str, Any]] = []
        self._history: list[list[Any]] = []
        self._in_turn = False
        self._ending = False
        self._status = 0  # the exit status of an orderly end: 1 after a result with is_error
        ids = {"pid": os.getpid(), "ppid": os.getppid(), "pgid": os.getpgrp(), "sid": os.getsid(0)}
        cwd = os.getcwd()  # noqa: PTH109 - pathlib would slow every start
        self.journal.note("start", {"argv": list(argv), "env": dict(os.environ), "cwd": cwd, **ids})
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    # Output

    def write(self, data: bytes, fd: int = 1) -> None:
        if fd == 1 and self.sink is not None:
            self.sink += data
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except BrokenPipeError:  # like the CLI: that the reader went away changes nothing
            if not self._unread:
                self.journal.note("mark", "unread")
            self._unread = True

    def emit(self, line: dict[str, Any]) -> None:
        """Print ``line`` with the session and an id of its own, as JavaScript's JSON.stringify would."""
        if line["type"] not in {"control_request", "control_response"}:
            self._printed += 1
            line = {**line, "session_id": lines.SESSION, "uuid": f"00000000-0000-4000-8000-{self._printed:012d}"}
        if line["type"] in {"user", "assistant"} and not line.get("is_api_error_message"):
            self._history.append([line["type"], line["message"]["content"]])
        if line["type"] == "result" and not self._ending:
            self._status = int(line["is_error"])
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        # Lone surrogates and line separators are printed as \u escapes, everything else as it is.
        self.write((text if text.isprintable() else json.dumps(line, separators=(",", ":"))).encode() + b"\n")

    # Input

    def _receive(self, timeout: float | None) -> None:
        """Handle what stdin has within ``timeout`` seconds (None: for ever)."""
        if not self._lines:
            self._read(timeout)
        while self._lines:  # popped one by one: an interrupt leaves the rest for later
            self._handle_line(self._lines.pop(0).decode("utf-8", "replace"))

    def _read(self, timeout: float | None) -> None:
        if self._eof or self.deaf:
            time.sleep(timeout or 0)
            return
        if not select.select([0], [], [], timeout)[0]:
            return
        chunk = os.read(0, READ_SIZE)
        if not chunk:
            self._eof = True
            self.journal.note("eof", value=True)
            chunk = b"\n"  # the last line need not end with one
        self._half_line.append(chunk)
        if b"\n" in chunk:
            *self._lines, rest = b"".join(self._half_line).split(b"\n")
            self._half_line = [rest]

    def _handle_line(self, line: str) -> None:
        if not line.strip():
            return
        self.journal.note("stdin", line)
        try:
            message = json.loads(line)
        except ValueError:
            self.write(fake_argv.parsing_error(line).encode(), 2)
            self.exit(1)
        match message.get("type"):
            case "control_request":
                self._control(message["request_id"], message["request"])
            case "control_response" if self.client:
                self.client.take(message["response"])
            case "user":
                self._queue.append(message)
            case "assistant":
                # At once, while user messages wait for their turn: written too early, history is out of order.
                self._history.append(["assistant", message["message"]["content"]])

    def _control(self, request_id: str, request: dict[str, Any]) -> None:
        subtype = request.get("subtype")
        fields: dict[str, Any] = {}
        if subtype == "initialize":
            self.client = ToolClient(self) if request.get("sdkMcpServers") else None
            fields["response"] = lines.initialized()
            fields |= {"pending_permission_requests": [], "pending_user_dialog_requests": []}
        elif subtype == "apply_flag_settings":
            self.model = request["settings"].get("model", self.model)
        elif subtype == "interrupt":
            fields["response"] = {"still_queued": []}
        elif subtype != "end_session":
            fields = {"subtype": "error", "error": f"Unsupported control request subtype: {subtype}"}
            fields["error_code"] = "unsupported_request"
        self.emit(lines.control_response(request_id, **fields))
        if subtype == "end_session":
            self._eof = True
            self._queue.clear()
        if self._in_turn and subtype in {"interrupt", "end_session"}:
            raise InterruptedTurn

    def init_line(self) -> dict[str, Any]:
        return lines.init(self.model) | (self.client.init_fields() if self.client else {})

    def wait(self) -> None:
        """Wait for more to come; without an answer of the server's nothing goes on."""
        self._receive(LIFETIME if self._eof else None)

    def poll(self) -> None:
        """Handle what has already come."""
        self._receive(0)

    def pause(self, seconds: float) -> None:
        """Wait, but keep answering control requests."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._receive(left)

    # Life

    def _on_signal(self, number: int, _frame: object) -> None:
        name = signal.Signals(number).name
        self.journal.note("signal", name)
        if name == "SIGINT":
            if self._ending:
                return
            self._ending = True
            if self._in_turn:
                raise InterruptedTurn
            self.exit(0)
        if name != "SIGTERM" or not self.ignores_sigterm:
            self.exit(128 + number)

    def exit(self, status: int) -> NoReturn:
        self.journal.note("exit", status)
        os._exit(status)

    def serve(self, startup: list[list[Any]]) -> NoReturn:
        """Run ``startup``, then one turn per user message until stdin ends."""
        Turn(self).run(startup)
        self.deaf = False
        while True:
            self._receive(0 if self._queue or self._eof or self._ending else None)
            if self._queue:
                self._answer(self._queue.pop(0))
            elif self._ending or (self._eof and not self.lingers):
                self.exit(self._status)
            elif self._eof:
                self.pause(LIFETIME)

    def _answer(self, message: dict[str, Any]) -> None:
        while self.client and self.client.tools is None:
            self.wait()
        content = message["message"]["content"]
        self._history.append(["user", content])
        if message.get("shouldQuery") is False:
            self.emit(self.init_line())
            self.emit(
                lines.result(None, lines.NOTHING, is_error=False, num_turns=0, stop_reason=None)
                | {"subtype": "success", "result": ""}
            )
            return
        self.journal.note("query", self._history)
        turn = Turn(self)
        self._in_turn = True
        try:
            turn.answer(find_script(content) or DEFAULT_SCRIPT)
        except InterruptedTurn:
            turn.interrupted()
        self._in_turn = False


def find_script(content: str | list[dict[str, Any]]) -> list[list[Any]] | None:
    """Return the steps between the last ``<<<`` and ``>>>`` of a message; None if there are none."""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    code, end, _ = text.rpartition("<<<")[2].partition(">>>")
    if not end:
        return None
    steps: list[list[Any]] = json.loads(binascii.a2b_base64(code.replace("-", "+").replace("_", "/")))
    return steps


def main(folder: str, startup: list[list[Any]]) -> NoReturn:
    """Run as the program that `fake_program.install` wrote, with its record ``folder`` and first steps."""
    signal.alarm(LIFETIME)
    argv = sys.argv[1:]
    if (answer := fake_argv.answer(argv)) is not None:
        output, status = answer
        os.write(1, output.encode())
        os._exit(status)
    fake = FakeClaude(folder, argv)
    if complaint := fake_argv.complaint(argv):
        fake.write(complaint.encode(), 2)
        fake.exit(1)
    fake.serve(startup)
