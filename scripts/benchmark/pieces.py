"""What the fake child writes, as files: the CLI's lines for a server, finished HTTP chunks for the bare floor."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["BLOCK", "MODEL", "STAMP", "make_fake"]

MODEL = "claude-sonnet-4-6"
"""The model that every request asks for."""
BLOCK = 1000
"""Deltas in one block, which the child writes at once."""
STAMP = "00000000"
"""Stands where a paced delta carries the time at which it was sent."""
HERE = Path(__file__).parent

_TEXTS = [f"{'word' * 2}"[: 4 + number % 4] + " " for number in range(BLOCK)]
_SESSION = "00000000-0000-4000-8000-000000000001"
_IDS = {"session_id": _SESSION, "parent_tool_use_id": None, "uuid": "00000000-0000-4000-8000-000000000006"}
_USAGE = {"input_tokens": 101, "cache_creation_input_tokens": 202, "cache_read_input_tokens": 303, "output_tokens": 1}
_FRAMES_PER_CHUNK = 200
"""As many as fill a pipe in the CLI's form: what a server that reads 64 KiB at once puts into one chunk."""


def _line(**fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _event(**event: object) -> bytes:
    return _line(type="stream_event", event=event, **_IDS, api_message_id="msg_mock_0001")


def _delta(text: str) -> bytes:
    return _event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def _message(content: list[object]) -> dict[str, object]:
    return {"id": "msg_mock_0001", "type": "message", "role": "assistant", "model": MODEL, "content": content} | {
        "stop_reason": None,
        "usage": _USAGE,
    }


def _head() -> bytes:
    return b"".join(
        (
            _line(type="system", subtype="init", **_IDS, cwd="/", tools=[], model=MODEL, claude_code_version="2.1.332"),
            _line(type="system", subtype="status", status="requesting", **_IDS),
            _event(type="message_start", message=_message([])),
            _event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        )
    )


def _tail(text: str) -> bytes:
    return b"".join(
        (
            _line(type="assistant", message=_message([{"type": "text", "text": text}]), **_IDS),
            _event(type="content_block_stop", index=0),
            _event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 44}),
            _event(type="message_stop"),
            _line(type="result", subtype="success", is_error=False, num_turns=1, result=text, usage=_USAGE, **_IDS),
        )
    )


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _frame(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-" + 24 * "x", "object": "chat.completion.chunk", "created": 1764460800, "model": MODEL}
    return b"data: " + json.dumps(head | {"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


def _lines() -> dict[str, bytes]:
    """What the CLI prints."""
    short = _head() + _delta("hello") + _tail("hello")
    return {
        "head": _head(),
        "block": b"".join(map(_delta, _TEXTS)),
        "delta": _delta(STAMP),
        "tail": _tail("".join(_TEXTS)),
        "answer": short,
        "hello": short,
        "line8": _head() + _delta("x" * (8 * 2**20 - 1024)) + _tail(""),
        "line32": _head() + _delta("x" * (32 * 2**20 - 1024)) + _tail(""),
    }


def _frames() -> dict[str, bytes]:
    """What a client is to receive, headers and all."""
    start = b"HTTP/1.1 200 \r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
    head = start + _chunk(_frame({"role": "assistant", "content": ""}))
    tail = _chunk(_frame({}, "stop") + b"data: [DONE]\n\n") + b"0\r\n\r\n"
    frames = [_frame({"content": text}) for text in _TEXTS]
    bursts = [b"".join(frames[n : n + _FRAMES_PER_CHUNK]) for n in range(0, BLOCK, _FRAMES_PER_CHUNK)]
    answer = json.dumps({"choices": [{"message": _message([]) | {"content": "hello"}}]}).encode()
    return {
        "head": head,
        "block": b"".join(map(_chunk, bursts)),
        "delta": _chunk(_frame({"content": STAMP})),
        "tail": tail,
        "answer": b"HTTP/1.1 200 \r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer),
        "hello": head + _chunk(_frame({"content": "hello"})) + tail,
        "line8": head + _chunk(_frame({"content": "x" * (8 * 2**20 - 1024)})) + tail,
        "line32": head + _chunk(_frame({"content": "x" * (32 * 2**20 - 1024)})) + tail,
    }


def make_fake(folder: Path) -> tuple[Path, Path]:
    """Make the fake ``claude`` twice, with its files: as the CLI, and as the floor's child. Return both programs."""
    program = _compile(folder) or _script(folder)
    made = []
    for name, pieces in (("cli", _lines()), ("floor", _frames())):
        home = folder / name
        home.mkdir(exist_ok=True)
        for piece, data in pieces.items():
            (home / piece).write_bytes(data)
        if not (home / "alive").exists():
            os.mkfifo(home / "alive")
        made.append(home / "claude")
        shutil.copy(program, made[-1])
    return made[0], made[1]


def _compile(folder: Path) -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    program = folder / "fake"
    command = [compiler, "-O2", "-w", "-o", str(program), str(HERE / "fake.c")]
    # A static program starts in half the time, where the static C library is installed.
    for options in (["-static"], []):
        if subprocess.run([*command, *options], capture_output=True, check=False).returncode == 0:
            return program
    return None


def _script(folder: Path) -> Path:
    print("bench: no C compiler, so the fake claude is a Python script that takes 10 ms to start", file=sys.stderr)
    program = folder / "fake"
    program.write_text(f"#!{sys.executable} -SE\n{(HERE / 'fake.py').read_text()}")
    program.chmod(0o755)
    return program
