"""The bare floor: what Trio, sockets and a child cost without HTTP, JSON or any rule.

A request is read up to the end of its body, a child of the same kind writes the finished response, and its output is
passed on piece by piece, with a heartbeat after each silent interval. A disconnect ends the child.
"""

import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

import trio

READ_SIZE = 2**16
BEAT = b"d\r\n: keepalive\n\n\r\n"


async def read_request(stream: trio.SocketStream, ahead: bytearray) -> bytes:
    """Return the body of the next request, of which ``ahead`` may be here already; empty when there is none."""
    while (head := ahead.find(b"\r\n\r\n")) < 0:
        data = await stream.receive_some()
        if not data:
            return b""
        ahead += data
    length = re.search(rb"(?i)content-length: (\d+)", ahead)
    size = head + 4 + int(length[1] if length else 0)
    while len(ahead) < size:
        ahead += await stream.receive_some()
    body = bytes(ahead[head + 4 : size])
    del ahead[:size]
    return body


async def pass_on(child: subprocess.Popen[bytes], stream: trio.SocketStream, interval: float) -> None:
    """Send the child's output until it ends."""
    assert child.stdout is not None
    async with trio.lowlevel.FdStream(os.dup(child.stdout.fileno())) as output:
        while True:
            data = None
            with trio.move_on_after(interval):
                data = await output.receive_some(READ_SIZE)
            if data == b"":
                return
            await stream.send_all(data or BEAT)


async def end(child: subprocess.Popen[bytes], grace: float) -> None:
    """End the child, kindly at first, and reap it."""
    pidfd = os.pidfd_open(child.pid)
    with trio.CancelScope(shield=True):
        child.terminate()
        with trio.move_on_after(grace):
            await trio.lowlevel.wait_readable(pidfd)
        child.kill()
        await trio.lowlevel.wait_readable(pidfd)
    os.close(pidfd)
    child.wait()


@dataclass(frozen=True)
class Floor:
    """How requests are answered: by which program, with what between two beats, and before it is killed (seconds)."""

    program: str
    interval: float
    grace: float

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of one connection."""
        ahead = bytearray()
        with suppress(trio.BrokenResourceError):
            while body := await read_request(stream, ahead):
                if not await self.answer(stream, body, ahead):
                    return

    async def answer(self, stream: trio.SocketStream, body: bytes, ahead: bytearray) -> bool:
        """Answer one request; return whether the client is still there. What it sends meanwhile goes ``ahead``."""
        # Like the server measured: 0.4 ms here, against a thread of Trio's own.
        child = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: ASYNC220
        assert child.stdin is not None
        assert child.stdout is not None
        there = False
        with child.stdin, child.stdout:
            child.stdin.write(body + b"\n")
            async with trio.open_nursery() as nursery:

                async def watch() -> None:
                    with suppress(trio.BrokenResourceError):
                        while data := await stream.receive_some():
                            ahead.extend(data)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(watch)
                await pass_on(child, stream, self.interval)
                there = True
                nursery.cancel_scope.cancel()
        await end(child, self.grace)
        return there


async def main(floor: Floor) -> None:
    """Serve until SIGTERM."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=1024)
        print(f"floor listens on http://127.0.0.1:{listeners[0].socket.getsockname()[1]}", flush=True)
        nursery.start_soon(trio.serve_listeners, floor.serve, listeners)


if __name__ == "__main__":
    trio.run(main, Floor(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
