"""The lines of the CLI's control protocol as types: what it asks of us, and what it answers (CLI 2.1.332)."""

import msgspec

from ocp_trio.claude.lines import Line

__all__ = [
    "Control",
    "ControlAnswer",
    "ControlReply",
    "ControlRequest",
    "ControlResponse",
    "ListedModel",
    "McpMessage",
]


class Call(msgspec.Struct, frozen=True, gc=False):
    """Which call of the model's it is."""

    id: str = msgspec.field(default="", name="claudecode/toolUseId")


class CallParameters(msgspec.Struct, frozen=True, gc=False):
    """Of a ``tools/call``; its name and arguments stand in the model's own message, too."""

    call: Call = msgspec.field(default=Call(), name="_meta")


class McpMessage(msgspec.Struct, frozen=True, gc=False):
    """A JSON-RPC request to an MCP server, or a notification: one without ``id``."""

    method: str = ""
    id: int | str | None = None
    params: CallParameters = CallParameters()


class Control(msgspec.Struct, frozen=True, gc=False):
    """What the CLI asks of whoever runs it; ``mcp_message`` passes a message to a server of ours."""

    subtype: str = ""
    message: McpMessage = McpMessage()


class ControlRequest(Line, frozen=True, gc=False, tag="control_request"):
    """A request that the CLI waits for an answer to."""

    request_id: str = ""
    request: Control = Control()


class ListedModel(msgspec.Struct, frozen=True, gc=False):
    """A model that the CLI serves: the name that it goes by there, and its id."""

    value: str = ""
    resolvedModel: str = ""  # noqa: N815 (the CLI's name)


class ControlAnswer(msgspec.Struct, frozen=True, gc=False):
    """What the CLI answers to ``initialize``."""

    models: list[ListedModel] = []


class ControlReply(msgspec.Struct, frozen=True, gc=False):
    """Tells how a request to the CLI went."""

    response: ControlAnswer | None = None


class ControlResponse(Line, frozen=True, gc=False, tag="control_response"):
    """The answer to a request of ours."""

    response: ControlReply = ControlReply()
