"""Start children ahead of their requests, lend them, keep them for their conversation: all in the backend's nursery."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict

import trio

from ocp_trio.claude.held import HeldTurn
from ocp_trio.claude.keeper import KeptChild
from ocp_trio.claude.lease import Lease, PoolCounts
from ocp_trio.claude.starts import Starts
from ocp_trio.errors import ChildSpawnError
from ocp_trio.streaming import Child
from ocp_trio.streaming.groups import unwrap_lone_error

__all__ = ["Children", "open_children"]

WARM_LIMIT = 600.0
"""Seconds that an unused child waits before it is replaced."""
CONVERSATION_LIMIT = 300.0
"""Seconds that a child waits for the next turn of its conversation, or for the results of its caller's tools."""
FIRST_TURN_LIMIT = 2.5
"""The same after a first turn: most requests are never continued, and an agent that goes on does so at once."""


class Children:
    """All children of a backend; made by `open_children`.

    Attributes:
        counts: What became of them.
        max_conversations: How many wait for the next turn of their conversation.
    """

    def __init__(
        self,
        start: Callable[[], AbstractAsyncContextManager[Child]],
        fingerprint: Callable[[], object],
        nursery: trio.Nursery,
        *,
        size: int,
        max_conversations: int,
        end_within: float,
    ) -> None:
        self.counts = PoolCounts()
        self._size = size
        self._start = start
        self._fingerprint = fingerprint
        self._nursery = nursery
        self.max_conversations = max_conversations
        self._end_within = end_within
        self._warm: list[KeptChild] = []
        self._conversations: OrderedDict[bytes, KeptChild] = OrderedDict()
        self._starts = Starts()

    @property
    def waiting(self) -> int:
        """Unused children that wait now."""
        return len(self._warm)

    @property
    def conversations(self) -> int:
        """Children that wait for the next turn of their conversation."""
        return len(self._conversations)

    @property
    def state(self) -> dict[str, float]:
        """All counts, and what waits now; the age of the oldest unused child in seconds."""
        oldest = max((trio.current_time() - kept.born for kept in self._warm), default=0.0)
        now = {"size": self._size, "idle": self.waiting, "conversations": self.conversations, "oldest": oldest}
        return {**now, **asdict(self.counts)}

    @asynccontextmanager
    async def lend(self, histories: Sequence[tuple[int, bytes]]) -> AsyncIterator[Lease]:
        """Lend a child for the length of a block: its conversation's, or an unused one, or a new one.

        `keep` at the end of the block keeps it; otherwise it is ended.

        Args:
            histories: Number of messages, and name of the conversation up to there; the longest first.

        Cancellation: the child is ended, within the bound of its process block.

        Raises:
            ChildSpawnError: a new one could not be started.
        """
        lease = await self._take_conversation(histories) or await self._take_warm() or await self._start_cold()
        try:
            yield lease
        finally:
            if lease.kept.conversation is None:
                lease.kept.give_back(None)
                with trio.move_on_after(self._end_within, shield=True):
                    await lease.kept.ended.wait()

    def keep(
        self, lease: Lease, conversation: bytes | None, *, held: HeldTurn | None = None, first_turn: bool = False
    ) -> bool:
        """Keep a lent child for the next turn of its conversation, if it may and such children are wanted."""
        if conversation is None or self.max_conversations == 0 or lease.child.exited.is_set():
            return False
        limit = FIRST_TURN_LIMIT if first_turn and held is None else CONVERSATION_LIMIT
        lease.kept.give_back(conversation, limit, held)
        return True

    async def _take_conversation(self, histories: Sequence[tuple[int, bytes]]) -> Lease | None:
        for known, name in histories:
            kept = self._conversations.pop(name, None)
            if kept is not None and await self._borrow(kept):
                kept.conversation = None
                self.counts.continued += 1
                return Lease(kept, known)
        return None

    async def _take_warm(self) -> Lease | None:
        current = self._fingerprint()
        while self._warm:
            kept = self._warm.pop(0)
            if kept.fingerprint != current:
                kept.dismiss()
            elif await self._borrow(kept):
                self.counts.hits += 1
                return Lease(kept, 0)
        return None

    async def _borrow(self, kept: KeptChild) -> bool:
        """Take a child that waits, unless it is dead."""
        if not await kept.borrow():
            return False
        alive = False
        try:
            alive = await kept.is_alive()
        finally:
            if not alive:
                kept.give_back(None)
        return alive

    async def _start_cold(self) -> Lease:
        kept: KeptChild = await self._nursery.start(self._keep_cold)
        self.counts.misses += 1
        return Lease(kept, 0)

    async def _keep_cold(self, task_status: trio.TaskStatus[KeptChild]) -> None:
        """Run a child that is borrowed from the beginning."""
        async with self._kept() as kept:
            task_status.started(kept)
            await self._serve(kept)

    async def _keep_warm(self, task_status: trio.TaskStatus[tuple[KeptChild, trio.Event]]) -> None:
        """Run a child that waits for whoever comes first."""
        async with self._kept() as kept:
            self._warm.append(kept)
            left = trio.Event()
            task_status.started((kept, left))
            try:
                borrowed = await kept.wait_to_be_borrowed(WARM_LIMIT)
            finally:
                left.set()
                if kept in self._warm:
                    self._warm.remove(kept)
            if borrowed:
                await self._serve(kept)
            else:
                self.counts.replaced += 1

    async def _serve(self, kept: KeptChild) -> None:
        """Wait while it is borrowed, and keep it for its conversation as long as that goes on."""
        while await kept.wait_for_return():
            name = kept.conversation
            assert name is not None
            self._remember(name, kept)
            try:
                if not await kept.wait_to_be_borrowed(kept.limit):
                    return
            finally:
                if self._conversations.get(name) is kept:
                    del self._conversations[name]

    def _remember(self, name: bytes, kept: KeptChild) -> None:
        if replaced := self._conversations.pop(name, None):
            replaced.dismiss()
        self._conversations[name] = kept
        while len(self._conversations) > self.max_conversations:
            self._conversations.popitem(last=False)[1].dismiss()

    @asynccontextmanager
    async def _kept(self) -> AsyncIterator[KeptChild]:
        fingerprint = self._fingerprint()
        kept: KeptChild | None = None
        try:
            async with self._start() as child:
                kept = KeptChild(child, fingerprint)
                yield kept
        finally:
            if kept is not None:
                kept.ended.set()

    async def keep_place(self) -> None:
        """Keep one unused child waiting, for ever, with growing pauses while that fails."""
        pause = 0.0
        while True:
            await trio.sleep(pause)
            try:
                kept, left = await self._nursery.start(self._keep_warm)
                await left.wait()
                failed = kept.failed
            except ChildSpawnError:
                failed = True
            self.counts.failed_starts += failed
            pause = self._starts.pause_after(pause, failed=failed)


@asynccontextmanager
async def open_children(
    start: Callable[[], AbstractAsyncContextManager[Child]],
    fingerprint: Callable[[], object],
    *,
    warm: int,
    max_conversations: int,
    end_within: float,
) -> AsyncIterator[Children]:
    """Run children for the length of a block; none outlives it.

    Args:
        start: Starts one, for the length of its block.
        fingerprint: Tells what a child started now would be made of; one made of something else is not lent.
        warm: How many unused ones wait.
        max_conversations: How many wait for the next turn of their conversation.
        end_within: Seconds that the end of one may take.

    Cancellation: ends all of them at once, in parallel, each within ``end_within``.
    """
    with unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            children = Children(
                start, fingerprint, nursery, size=warm, max_conversations=max_conversations, end_within=end_within
            )
            for _ in range(warm):
                nursery.start_soon(children.keep_place)
            yield children
            nursery.cancel_scope.cancel()
