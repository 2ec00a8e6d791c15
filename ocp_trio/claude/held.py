"""A turn that has stopped at calls of the caller's tools, until their results come."""

from ocp_trio.claude.control_lines import ControlRequest
from ocp_trio.claude.lines import Assistant, Result, StreamEvent, User
from ocp_trio.claude.stream_json import StreamJsonDecoder
from ocp_trio.claude.tool_server import ToolServer
from ocp_trio.errors import LineTooLongError

__all__ = ["HeldTurn"]


class HeldTurn:
    """What has to be known to go on with a turn; without I/O.

    Args:
        decoder: What has read the child's output so far.
        server: What the child asks for its tools.
    """

    def __init__(self, decoder: StreamJsonDecoder, server: ToolServer) -> None:
        self.decoder = decoder
        self.server = server

    def hear(self, data: bytes) -> bool:
        """Take what the child says meanwhile; return whether its turn still waits.

        It may make further calls of the same message, say that it waits (every 30 s), and answer questions.
        """
        try:
            lines = self.decoder.feed(data)
        except LineTooLongError:
            return False
        for line in lines:
            match line:
                case Assistant() | Result() | StreamEvent() | User():
                    return False
                case ControlRequest() if self.server.take(line):
                    # Nobody would send the answer.
                    return False
        return True
