"""Say that a stream is alive while there is nothing else to say.

The heartbeat is a hint to whoever receives: it never ends, delays or retries anything, and never counts as life of
whatever is waited for.
"""

from collections.abc import Callable
from math import inf

import trio

__all__ = ["Rearm", "open_rearm", "run_heartbeat"]


class Rearm:
    """The writer's end of the channel that re-arms a heartbeat."""

    def __init__(self, channel: trio.MemorySendChannel[None]) -> None:
        self._channel = channel

    def __call__(self) -> None:
        """Start the silent interval anew: something real has just been written."""
        try:
            self._channel.send_nowait(None)
        except (trio.WouldBlock, trio.BrokenResourceError):
            # One re-arming that waits to be seen is as good as two; without a heartbeat there is none to re-arm.
            return

    def close(self) -> None:
        """End the heartbeat: nothing more will be written."""
        self._channel.close()


def open_rearm() -> tuple[Rearm, trio.MemoryReceiveChannel[None]]:
    """Make both ends of the channel between a writer and its heartbeat."""
    # Capacity 1: the writer never waits for the heartbeat.
    send, receive = trio.open_memory_channel[None](1)
    return Rearm(send), receive


async def run_heartbeat(interval: float, rearmed: trio.MemoryReceiveChannel[None], offer: Callable[[], None]) -> None:
    """Offer one beat after each ``interval`` in which the writer wrote nothing, until the channel is closed.

    Args:
        interval: Seconds of silence before a beat; 0 and `math.inf` never beat.
        rearmed: Receives one item whenever something real was written.
        offer: Hand a beat to the writer without waiting. `trio.WouldBlock` means that the writer is busy: bytes wait
            for the receiver already, so none is due. `trio.BrokenResourceError` and `trio.ClosedResourceError` mean
            that nothing more will be written.

    Cancellation: at once; nothing is left, neither task nor timer.
    """
    with rearmed:
        while True:
            with trio.move_on_after(interval or inf) as silence:
                try:
                    await rearmed.receive()
                except trio.EndOfChannel:
                    return
            if silence.cancelled_caught:
                try:
                    offer()
                except trio.WouldBlock:
                    continue
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    return
