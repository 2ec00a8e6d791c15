"""A child that does what a script says, at the times that it says, without a process."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from signal import SIGKILL, SIGTERM
from typing import TypeAlias

import trio
import trio.testing

from ocp_trio.errors import OcpError
from ocp_trio.streaming import Child, ProcessTally
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["ScriptedChild", "ScriptedProgram"]

Step: TypeAlias = bytes | float | None

NO_PROCESS = 2**22
"""Linux gives no process this id or a higher one: a signal to a double reaches nobody."""
READ_SIZE = 2**16
"""Bytes of output in one piece at most, as with a real child."""


class ScriptedChild(Child):
    """One run of a `ScriptedProgram`, in place of an `ocp_trio.streaming.ChildProcess`.

    Attributes:
        command: What was to be run.
        env: Its environment.
        received: All that was written to its input so far.
        stdin_closed: Whether its input was closed.
        reply: What it prints whenever something is written to it.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str], reply: bytes = b"") -> None:
        self.command = tuple(command)
        self.env = dict(env)
        self.pid = NO_PROCESS
        self.exited = trio.Event()
        self.stderr_tail = b""
        self.received = b""
        self.stdin_closed = False
        self.reply = reply
        self.stdin = self._stdin = trio.testing.MemorySendStream(self._record, close_hook=self._record_close)
        self._stdout = trio.testing.MemoryReceiveStream()
        self._returncode: int | None = None

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._returncode

    async def receive_some(self) -> bytes:
        """Return the next piece of its output; ``b""`` at the end."""
        return bytes(await self._stdout.receive_some(READ_SIZE))

    async def play(self, script: Sequence[Step], returncode: int, scope: trio.CancelScope) -> None:
        """Follow the script, then exit, unless ``scope`` is cancelled before."""
        with scope:
            for step in script:
                if step is None:
                    self._stdout.put_eof()
                elif isinstance(step, bytes):
                    self._stdout.put_data(step)
                else:
                    await trio.sleep(step)
            self.exit(returncode)

    def exit(self, returncode: int) -> None:
        """End now, unless it has ended."""
        if self._returncode is None:
            self._returncode = returncode
            self._stdout.put_eof()
            self.exited.set()

    async def _record(self) -> None:
        if self.exited.is_set():
            raise trio.BrokenResourceError
        # Writing nothing leaves nothing to be got.
        with suppress(trio.WouldBlock):
            self.received += self._stdin.get_data_nowait()
            if self.reply:
                self._stdout.put_data(self.reply)

    def _record_close(self) -> None:
        self.stdin_closed = True


class ScriptedProgram:
    """A program that follows one script each time it is run.

    Pass `open` wherever `ocp_trio.streaming.open_child_process` goes.

    Args:
        script: Bytes to print, seconds to be silent (`math.inf` never ends by itself), None to close the output.
        returncode: Exit status at the end of the script.
        stderr: Error output.
        obeys_after: Seconds from SIGTERM to its exit; `math.inf` ignores the signal, and has to be killed.
        reply: What it prints whenever something is written to it.
        refuse: An error to raise in place of running.

    Attributes:
        runs: All runs, in order.
        running: How many have not been left yet.
    """

    def __init__(
        self,
        script: Sequence[Step],
        *,
        returncode: int = 0,
        stderr: bytes = b"",
        obeys_after: float = 0,
        reply: bytes = b"",
        refuse: OcpError | None = None,
    ) -> None:
        self.runs: list[ScriptedChild] = []
        self.running = 0
        self._script = script
        self._returncode = returncode
        self._stderr = stderr
        self._obeys_after = obeys_after
        self._reply = reply
        self._refuse = refuse

    @asynccontextmanager
    async def open(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,  # noqa: ARG002 (in place of open_child_process)
        grace_period: float = 5.0,
        tally: ProcessTally | None = None,
    ) -> AsyncIterator[ScriptedChild]:
        """Run it for the length of a block.

        Cancellation: leaving the block ends it as a real child is ended, shielded: with SIGTERM, then after
        ``grace_period`` with SIGKILL.
        """
        if self._refuse is not None:
            raise self._refuse
        tally = tally or ProcessTally()
        child = ScriptedChild(command, env, self._reply)
        child.stderr_tail = self._stderr
        self.runs.append(child)
        self.running += 1
        tally.alive += 1
        # Shielded: as a process does, the script goes on while it is being ended.
        playing = trio.CancelScope(shield=True)
        with unwrap_lone_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child.play, self._script, self._returncode, playing)
                try:
                    yield child
                finally:
                    await self._end(child, grace_period, tally)
                    self.running -= 1
                    tally.alive -= 1
                    playing.cancel()

    async def _end(self, child: ScriptedChild, grace_period: float, tally: ProcessTally) -> None:
        """End a run; takes at most ``grace_period`` seconds."""
        if child.exited.is_set():
            return
        tally.count_signal(SIGTERM)
        with trio.CancelScope(shield=True), trio.move_on_after(min(self._obeys_after, grace_period)):
            await child.exited.wait()
        if child.exited.is_set():
            return
        if self._obeys_after > grace_period:
            tally.count_signal(SIGKILL)
        child.exit(-SIGTERM if self._obeys_after <= grace_period else -SIGKILL)
