"""One connection of the Trio worker: its faults stay its own, and a peer that does not read cannot hold it."""

import fcntl
import logging
import math
import os
import struct
import termios
from contextlib import nullcontext, suppress
from typing import Any

import trio
from hypercorn.events import Closed, Event, RawData
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from trio import socket as tsocket

from ocp_trio.hypercorn_hardening.protocol import Overdue, Unread

__all__ = ["Connection"]

_LINGER = 2.0
"""Seconds for which what a peer still sends after our last word is read and dropped: a close before it has sent all
would reset the connection, and could take our last word with it."""
_KERNEL_MARGIN = 1.0
"""Seconds by which the kernel's own limit on what nobody acknowledges is longer than the write limit."""
_BURST = 2**16
"""Bytes written without blocking after which other tasks get their turn."""
_TLS_PIECE = 2**14
"""Bytes encrypted at a time, one record: the steps in which a write over TLS is seen to make progress."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

_log = logging.getLogger("ocp_trio.hypercorn")


class Connection(TCPServer):
    """A connection from accept to close.

    Args:
        write_timeout: Seconds without progress after which a write drops the connection; `math.inf` never does.
        upstream: What upstream's server takes.
    """

    def __init__(self, write_timeout: float, *upstream: Any) -> None:  # noqa: ANN401 - passed through as they are
        super().__init__(*upstream)
        self._write_timeout = write_timeout
        stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = self.stream
        self._plain = isinstance(stream, trio.SocketStream)
        self._socket = stream.socket if isinstance(stream, trio.SocketStream) else stream.transport_stream.socket
        self._reading = trio.CancelScope()
        self._burst = 0

    async def run(self) -> None:
        """Serve the connection; whatever goes wrong in it is logged, and ends nothing else."""
        # Trio sets TCP_NODELAY. This one ends what waits in the kernel while nobody is writing here; it comes second,
        # because the drop of a write is logged.
        if self._write_timeout < math.inf and hasattr(tsocket, "TCP_USER_TIMEOUT"):
            with suppress(OSError):
                milliseconds = int((self._write_timeout + _KERNEL_MARGIN) * 1000)
                self._socket.setsockopt(tsocket.IPPROTO_TCP, tsocket.TCP_USER_TIMEOUT, milliseconds)
        try:
            await super().run()
        # All connections share one nursery upstream: whatever leaves one of them, foreseen or not, would end them all.
        except* Exception as errors:  # noqa: BLE001 - the boundary of a connection
            _log.error("connection_crashed", exc_info=errors)

    async def protocol_send(self, event: Event) -> None:
        """Do to the transport what the protocol asks for."""
        if isinstance(event, RawData):
            await self._write(event.data)
        elif isinstance(event, Closed):
            if isinstance(event, Unread):
                await self._linger()
            else:
                self._socket.close()
            await self.protocol.handle(Closed())
        else:
            await super().protocol_send(event)

    async def _read_data(self) -> None:
        try:
            with self._reading:
                while (data := await self._receive()) is not None:
                    if not self._lingering:
                        await self.protocol.handle(RawData(data))
                    if not data:
                        break
        finally:
            # Whoever has stopped speaking is not spoken to: this gets a shielded write to return, at a shutdown too.
            self._socket.close()
        await self.protocol.handle(Closed())
        await self.idle_task.stop()

    async def _receive(self) -> bytes | None:
        """Read some; empty when the peer has finished, None when the connection is broken, closed or overdue."""
        try:
            # Without a limit, which is the rule, there is no scope either: it would cost each request two.
            with trio.fail_after(self.config.read_timeout) if self.config.read_timeout else nullcontext():
                return bytes(await self.stream.receive_some(MAX_RECV))
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            return None

    async def _write(self, data: bytes) -> None:
        """Write at once what the kernel takes; wait only for the rest."""
        sent = 0
        if self._plain and not self.send_lock.locked():
            try:
                sent = os.write(self._socket.fileno(), data)
            except BlockingIOError:
                pass
            except OSError:
                await self._lose()
                return
        if sent < len(data):
            await self._write_slowly(memoryview(data)[sent:])
            return
        self._burst += sent
        if self._burst >= _BURST:
            self._burst = 0
            await trio.lowlevel.checkpoint()

    async def _write_slowly(self, rest: memoryview) -> None:
        """Write the ``rest``, ahead of anything else.

        Cancellation: shielded, because half a chunk would spoil the stream; for ``write_timeout`` seconds after the
        last progress at most, and not beyond the end of the connection.
        """
        with trio.CancelScope(shield=True):
            # Taken before anything else can run: nothing comes between the two parts.
            async with self.send_lock:
                try:
                    while rest:
                        await self._wait_for_room()
                        rest = rest[await self._write_some(rest) :]
                except trio.TooSlowError:
                    _log.warning("write_timeout", extra={"limit": self._write_timeout})
                    self._reset()
                except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                    self._socket.close()
                else:
                    return
        await self._lose()

    async def _wait_for_room(self) -> None:
        """Wait until the kernel takes more.

        Raises:
            TooSlowError: the peer has acknowledged nothing for ``write_timeout`` seconds.
        """
        while True:
            queued = self._queued()
            with trio.move_on_after(self._write_timeout):
                await self.stream.wait_send_all_might_not_block()
                return
            # The kernel has room again only after some 64 KiB: a slow peer may get on without our noticing above.
            if self._queued() >= queued:
                raise trio.TooSlowError

    def _queued(self) -> int:
        """Count the bytes that the peer has not acknowledged."""
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError
        count: int = struct.unpack("i", fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return count

    async def _write_some(self, rest: memoryview) -> int:
        if not self._plain:
            piece = rest[:_TLS_PIECE]
            with trio.fail_after(self._write_timeout):
                await self.stream.send_all(piece)
            return len(piece)
        try:
            return os.write(self._socket.fileno(), rest)
        except BlockingIOError:
            return 0

    async def _lose(self) -> None:
        """Tell the protocol that its peer has gone."""
        await self.protocol.handle(Closed())
        await trio.lowlevel.checkpoint()

    def _reset(self) -> None:
        """Close so that the kernel, too, forgets what has not been read."""
        with suppress(OSError):
            self._socket.setsockopt(tsocket.SOL_SOCKET, tsocket.SO_LINGER, _RESET_ON_CLOSE)
        self._socket.close()

    @property
    def _lingering(self) -> bool:
        return self._reading.deadline < math.inf

    async def _linger(self) -> None:
        """Say that nothing more comes from here, and read on for a while."""
        self._reading.deadline = trio.current_time() + _LINGER
        if self._plain:
            try:
                await self.stream.send_eof()
            except (trio.BrokenResourceError, trio.BusyResourceError, trio.ClosedResourceError):
                # Gone, or half of a response waits to be read, which will not be completed.
                self._socket.close()

    async def _idle_timeout(self) -> None:
        with trio.move_on_after(self.config.keep_alive_timeout) as patience:
            await self.context.terminated.wait()
        with trio.CancelScope(shield=True):
            await self.protocol.handle(Overdue() if patience.cancelled_caught else Closed())
            if not self._lingering:
                self._socket.close()
