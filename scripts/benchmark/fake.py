"""Do what fake.c does, where there is no C compiler: it starts ten times as slowly, which the figures then include."""

# pathlib, signal and typing would each double the time that this takes to start.
# ruff: noqa: PTH118, PTH120, PTH123

import mmap
import os
import sys
import time

INTERVAL = 0.02
"""Seconds between two paced deltas."""


def put(data: bytes | mmap.mmap) -> None:
    """Write all of ``data``."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def pace(count: int, data: mmap.mmap) -> None:
    """Write ``data`` ``count`` times, stamped."""
    before, after = bytes(data).split(b'00000000"')
    due = time.monotonic()
    for _ in range(count):
        put(b'%b%08d"%b' % (before, time.monotonic_ns() // 1000 % 10**8, after))
        due += INTERVAL
        time.sleep(max(0.0, due - time.monotonic()))


def hold(folder: str) -> None:
    """Say in the FIFO that we live, and stay."""
    alive = os.open(os.path.join(folder, "alive"), os.O_WRONLY)
    os.write(alive, b"!")
    while True:
        time.sleep(3600)


def play(folder: str, script: str) -> None:
    """Do what the script says; fake.c explains its words."""
    words = iter(script.split(" "))
    for word in words:
        if word == "end":
            return
        if word == "ignore-term":
            import signal  # noqa: PLC0415

            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif word == "hold":
            hold(folder)
        elif word == "rest":
            time.sleep(int(next(words)) / 1000)
        else:
            count = 1 if word == "send" else int(next(words))
            with open(os.path.join(folder, next(words)), "rb") as file:
                data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            if word == "paced":
                pace(count, data)
                continue
            for _ in range(count):
                put(data)


def main() -> None:
    """Wait for the script, play it, and stay while a conversation may go on."""
    if "--version" in sys.argv:
        print("2.1.332 (Claude Code)")
        return
    for line in sys.stdin.buffer:
        if b"bench: " in line and b'"shouldQuery":false' not in line:
            play(os.path.dirname(sys.argv[0]), line.decode("utf-8", "replace").split("bench: ", 1)[1])
            # Like the CLI: with a conversation on its input it stays until that ends.
            if "--input-format" not in sys.argv:
                return


main()
