"""Keep the accounts of a request: its charge against a quota, and its row of usage."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime

import trio

from ocp_trio.completion import (
    Batch,
    Completed,
    CompletionRequest,
    Failed,
    Started,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from ocp_trio.errors import (
    BackendUnavailableError,
    QueueFullError,
    QuotaExceededError,
    ShuttingDownError,
    StoreUnavailableError,
)
from ocp_trio.store import Charge, Refusal, Store, UsageRow
from ocp_trio.web.callers import Caller
from ocp_trio.web.ended import Ended

__all__ = ["Ledger", "charge"]

SETTLE_WITHIN = 5.0
"""Seconds that writing a row may take, whatever becomes of its request; the store's own limit is shorter."""
UNCHARGED = (QueueFullError, BackendUnavailableError, ShuttingDownError)
"""What fails before a child has been asked anything."""
logger = logging.getLogger("ocp_trio.web")

_DELTAS = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})


async def charge(store: Store | None, caller: Caller, *, or_not: bool = False) -> Charge | None:
    """Count a request against the caller's quota, where there is one.

    Args:
        store: Where it is counted.
        caller: Whose request it is.
        or_not: Whether a request that cannot be counted now is served all the same.

    Raises:
        QuotaExceededError: the quota is spent.
        StoreUnavailableError: it cannot be counted now.
    """
    if store is None or caller.key_id is None:
        return None
    try:
        # One who has just been let in without his key having been looked up does not wait for the store once more.
        verdict = None if or_not and store.state.cause else await store.quotas.charge(caller.key_id)
    except StoreUnavailableError:
        if not or_not:
            raise
        verdict = None
    if verdict is None:
        logger.warning("uncounted", extra={"key": caller.key_id})
        return None
    if isinstance(verdict, Refusal):
        raise QuotaExceededError(
            f"the {verdict.period} quota of this key is spent: {verdict.used} of {verdict.limit} requests",
            retry_after=verdict.resets_in,
            quota={
                "period": verdict.period,
                "limit": verdict.limit,
                "used": verdict.used,
                "resetsIn": round(verdict.resets_in),
            },
        )
    return verdict


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The accounts of one request; without a store nothing is kept.

    Attributes:
        starts_at_once: Whether nothing has been spent on it until `Started` has come.
        last_life: When its upstream last said anything, by Trio's clock; None while it waits for its turn.
        first_delta: When the first visible text came.
        queued: Seconds that it has waited for its turn; None while it waits.
        deltas: Pieces of text, reasoning and tool calls so far.
        response_chars: Characters of visible text so far.
    """

    store: Store | None
    charge: Charge | None
    caller: Caller
    request: CompletionRequest
    request_id: str
    backend: str
    arrived: float
    starts_at_once: bool
    last_life: float | None = None
    first_delta: float | None = None
    queued: float | None = None
    deltas: int = 0
    response_chars: int = 0
    settled: bool = False

    def saw(self, batch: Batch) -> None:
        """Take note of what a client is about to see."""
        self.last_life = trio.current_time()
        size = sum([len(event.text) for event in batch if type(event) is TextDelta])
        if size and self.first_delta is None:
            self.first_delta = self.last_life
        self.response_chars += size
        if batch and type(batch[0]) is Started:
            # Again with each attempt at an answer of a form that was asked for. Who shares a run may have come later.
            self.queued = (self.queued or 0.0) + min(batch[0].queued, self.last_life - self.arrived)
        self.deltas += sum(map(_DELTAS.__contains__, map(type, batch)))

    async def settle(self, outcome: Completed | Failed | None, heartbeats: int) -> None:
        """Write the row, once; None means that the client has left.

        Cancellation: shielded, for `SETTLE_WITHIN` seconds at most.

        Raises:
            StoreUnavailableError: it cannot be written now.
        """
        if self.store is None or self.settled:
            return
        self.settled = True
        with trio.move_on_after(SETTLE_WITHIN, shield=True):
            ended = self.ended(outcome, heartbeats)
            unstarted = self.starts_at_once and self.queued is None
            if self.charge is not None and (unstarted or isinstance(ended.error, UNCHARGED)):
                await self.store.quotas.refund(self.charge)
            usage = outcome.usage if isinstance(outcome, Completed) else Usage()
            await self.store.usage.record(self._row(ended, usage))

    def ended(self, outcome: Completed | Failed | None, heartbeats: int) -> Ended:
        """Return what is counted of an end at this moment; None means that the client has left."""
        now = trio.current_time()
        seconds = now - self.arrived
        return Ended(
            request_id=self.request_id,
            owner=self.caller,
            at=now,
            model=self.request.model,
            backend=self.backend,
            error=outcome.error if isinstance(outcome, Failed) else None,
            left=outcome is None,
            seconds=seconds,
            first_delta=None if self.first_delta is None else self.first_delta - self.arrived,
            queued=seconds if self.queued is None else self.queued,
            deltas=self.deltas,
            heartbeats=heartbeats,
        )

    def _row(self, ended: Ended, usage: Usage) -> UsageRow:
        texts = (part.text for message in self.request.messages for part in message.parts if isinstance(part, Text))
        return UsageRow(
            request_id=self.request_id,
            created_at=datetime.now(UTC),
            key_id=self.caller.key_id,
            key_name=self.caller.name,
            model=ended.model,
            backend=ended.backend,
            outcome=ended.outcome,
            tokens_in=usage.input,
            tokens_out=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            cost_usd=usage.cost_usd,
            queue_wait_ms=_milliseconds(ended.queued),
            first_delta_ms=None if ended.first_delta is None else _milliseconds(ended.first_delta),
            total_ms=_milliseconds(ended.seconds),
            heartbeats=ended.heartbeats,
            prompt_chars=len(self.request.system) + sum(map(len, texts)),
            response_chars=self.response_chars,
        )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
