"""A child that may wait before it is used, and again between two turns of its conversation."""

import msgspec
import trio

from ocp_trio.claude.held import HeldTurn
from ocp_trio.streaming import Child

__all__ = ["KeptChild"]

PATIENCE = 0.5
"""Seconds for which a sign of life is waited for."""
START = 10.0
"""Seconds that a child may take to start: a younger one that has not answered yet may be silent, and is used."""
_QUESTION = msgspec.json.encode(
    {
        "type": "control_request",
        "request_id": "alive",
        "request": {"subtype": "apply_flag_settings", "settings": {}},
    }
)


class KeptChild:
    """One child, between its spawn and its end; the task that runs it is the keeper, whoever uses it borrows it.

    Attributes:
        child: The process.
        fingerprint: What its program and its login were when it was started.
        born: When it was started, by Trio's clock.
        ended: Set once it has been reaped.
        conversation: The one that it is kept for; None while it is borrowed, or never was.
        limit: Seconds that it is kept for it.
        held: Its turn, where that waits for results of the caller's tools.
        failed: It said something unasked, or ended, while it waited.
    """

    def __init__(self, child: Child, fingerprint: object) -> None:
        self.child = child
        self.fingerprint = fingerprint
        self.born = trio.current_time()
        self.ended = trio.Event()
        self.conversation: bytes | None = None
        self.limit = 0.0
        self.held: HeldTurn | None = None
        self.failed = False
        self._has_answered = False
        self._wanted = False
        self._waiting = trio.CancelScope()
        self._decided = trio.Event()
        self._available = False
        self._returned = trio.Event()

    async def wait_to_be_borrowed(self, limit: float) -> bool:
        """Wait until somebody borrows it, for at most ``limit`` seconds; False when it is of no use to anybody.

        It is to say nothing meanwhile, but that it waits: whatever else it says unasked, its end included, makes it
        useless.
        """
        self._wanted, self._available = False, False
        self._decided, self._returned = trio.Event(), trio.Event()
        with trio.move_on_after(limit) as self._waiting:
            await self._listen()
        self.failed = not self._waiting.cancelled_caught
        self._available = self._wanted and not self.failed
        self._decided.set()
        return self._available

    async def _listen(self) -> None:
        """Return when it has said what makes it useless."""
        while data := await self.child.receive_some():
            if self.held is None or not self.held.hear(data):
                return

    async def borrow(self) -> bool:
        """Take it from its keeper; False if it has just become useless.

        Cancellation: shielded, for a pass of the scheduler: half a hand-over would lose the child.
        """
        self._wanted = True
        self._waiting.cancel()
        with trio.CancelScope(shield=True):
            await self._decided.wait()
        return self._available

    async def is_alive(self) -> bool:
        """Ask a borrowed child for a sign of life: it may have died or hung since, without anybody having noticed.

        Takes at most `PATIENCE` seconds.
        """
        with trio.move_on_after(PATIENCE):
            try:
                await self.child.stdin.send_all(_QUESTION + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return False
            while data := await self.child.receive_some():
                if self.held is not None and not self.held.hear(data):
                    return False
                if data.endswith(b"\n"):
                    return True
            return False
        return not self._has_answered and trio.current_time() < self.born + START

    def give_back(self, conversation: bytes | None, limit: float = 0.0, held: HeldTurn | None = None) -> None:
        """Return it, to be kept for the ``conversation`` of this name for ``limit`` seconds, or to be ended."""
        self.conversation, self.limit, self.held = conversation, limit, held
        self._has_answered = self._has_answered or conversation is not None
        self._returned.set()

    def dismiss(self) -> None:
        """End it, unless somebody has borrowed it."""
        self._waiting.cancel()

    async def wait_for_return(self) -> bool:
        """Wait until it has been given back; return whether it is to be kept."""
        await self._returned.wait()
        return self.conversation is not None
