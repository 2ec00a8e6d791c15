"""Play the steps of a script that are about bytes, time and processes rather than about an answer."""

import binascii
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import fake_lines as lines

if TYPE_CHECKING:
    from fake_claude import FakeClaude

Step: TypeAlias = list[Any]

LIFETIME = 60  # seconds, of the child and of its grandchildren
WRITE_SIZE = 1 << 16
RELEASE_INTERVAL = 0.003  # seconds between two looks for a file


class Steps:
    """What a script can do; each method ``do_NAME`` is the step of that name."""

    def __init__(self, fake: "FakeClaude") -> None:
        self.fake = fake

    def run(self, steps: list[Step]) -> None:
        for name, *arguments in steps:
            self.fake.poll()
            getattr(self, f"do_{name}")(*arguments)

    def do_steps(self, steps: list[Step]) -> None:
        self.run(steps)

    # Bytes

    def do_line(self, line: dict[str, Any]) -> None:
        self.fake.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def do_raw(self, data: str, times: int) -> None:
        self.repeat_bytes(binascii.a2b_base64(data), times)

    def do_stderr(self, data: str, times: int) -> None:
        self.repeat_bytes(binascii.a2b_base64(data), times, fd=2)

    def repeat_bytes(self, data: bytes, times: int, fd: int = 1) -> None:
        at_once = max(1, WRITE_SIZE // max(1, len(data)))
        for begin in range(0, times, at_once):
            self.fake.write(data * min(at_once, times - begin), fd)

    def do_long_line(self, size: int) -> None:
        frame = b'{"type":"padding","x":"%s"}\n'
        self.fake.write(frame % (b"x" * (size - len(frame) + 2)))

    def do_pieces(self, steps: list[Step], size: int, gap: float) -> None:
        self.fake.sink = sink = bytearray()
        try:
            self.run(steps)
        finally:
            self.fake.sink = None
        data = bytes(sink)
        for begin in range(0, len(data), size):
            self.fake.write(data[begin : begin + size])
            self.fake.pause(gap)

    def do_close_stdout(self) -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)

    # Time

    def do_sleep(self, seconds: float) -> None:
        self.fake.pause(seconds)

    def do_wait_for(self, path: str) -> None:
        while not os.path.exists(path):  # noqa: PTH110 - pathlib would slow every start
            self.fake.pause(RELEASE_INTERVAL)

    def do_hang(self, deaf: bool) -> None:
        self.fake.deaf = deaf
        while True:
            self.fake.pause(LIFETIME)

    def do_mark(self, name: str) -> None:
        self.fake.journal.note("mark", name)

    # Processes

    def do_exit(self, status: int) -> None:
        self.fake.exit(status)

    def do_die(self, name: str) -> None:
        number = signal.Signals[name]
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(LIFETIME)

    def do_ignore_sigterm(self) -> None:
        self.fake.ignores_sigterm = True

    def do_linger(self) -> None:
        self.fake.lingers = True

    def do_grandchild(self, own_session: bool, holds_stdout: bool, ignores_sigterm: bool) -> None:
        ready, mine = os.pipe()
        pid = os.fork()
        if pid == 0:
            _sleep_as_grandchild(mine, own_session, holds_stdout, ignores_sigterm)
        os.close(mine)
        os.read(ready, 1)
        os.close(ready)
        self.fake.journal.note("grandchild", pid)

    # Lines beside an answer

    def do_status(self, status: str | None) -> None:
        self.fake.emit({"type": "system", "subtype": "status", "status": status})

    def do_retry(self, attempt: int, error_status: int | None, error: str) -> None:
        fields = {"attempt": attempt, "max_retries": 10, "retry_delay_ms": 550}
        line = {"type": "system", "subtype": "api_retry", **fields, "error_status": error_status, "error": error}
        self.fake.emit(line)

    def do_ping(self) -> None:
        self.fake.emit({"type": "stream_event", "event": {"type": "ping"}, "parent_tool_use_id": None})

    def do_own_user_message(self, text: str) -> None:
        self.fake.emit(lines.user([{"type": "text", "text": text}], isSynthetic=True))

    def do_rate_limit(self, info: dict[str, Any]) -> None:
        self.fake.emit({"type": "rate_limit_event", "rate_limit_info": info})

    def do_tool_progress(self, seconds: int) -> None:
        call = "toolu_fake_0001"
        fields = {"tool_use_id": f"{call}-heartbeat-0", "tool_name": "Bash", "parent_tool_use_id": call}
        self.fake.emit({"type": "tool_progress", **fields, "elapsed_time_seconds": seconds, "heartbeat": True})

    def do_synthetic(self, text: str, error: str, status: int | None, stop_reason: str, extra: dict[str, Any]) -> None:
        self.fake.emit(lines.synthetic(text, error, status, stop_reason, extra))


def _sleep_as_grandchild(ready: int, own_session: bool, holds_stdout: bool, ignores_sigterm: bool) -> NoReturn:
    """Become what the step asks for, say so by closing ``ready``, and never return."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignores_sigterm else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.alarm(LIFETIME)
    if own_session:
        os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0,) if holds_stdout else (0, 1, 2):
        os.dup2(null, fd)
    os.close(ready)
    time.sleep(LIFETIME)
    os._exit(0)
