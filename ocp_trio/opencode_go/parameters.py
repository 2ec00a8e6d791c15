"""What both flavours of a request decide alike: its limit, its effort, the tools on offer."""

from msgspec.structs import replace

from ocp_trio.completion import CompletionRequest, Tool
from ocp_trio.opencode_go.models import GoModel

__all__ = ["effort", "max_tokens", "offered"]

EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""Ascending."""
NO_PARAMETERS = {"type": "object", "properties": {}}
"""The schema of a tool that takes nothing; an empty one is refused."""


def max_tokens(request: CompletionRequest, model: GoModel) -> int:
    """Return how long the answer may be, in tokens: never longer than the model's longest, which would be refused."""
    return min(request.max_tokens or model.max_output, model.max_output)


def effort(wanted: str | None, model: GoModel) -> str | None:
    """Return the least effort of the model's that is no less than ``wanted``, or its greatest; None sends none."""
    if wanted not in EFFORTS or not model.efforts:
        return None
    enough = (each for each in model.efforts if EFFORTS.index(each) >= EFFORTS.index(wanted))
    return next(enough, model.efforts[-1])


def offered(request: CompletionRequest) -> list[Tool]:
    """Return the tools on offer, narrowed to those that the choice names."""
    names = request.tool_choice.names
    tools = (tool for tool in request.tools if not names or tool.name in names)
    return [tool if tool.parameters else replace(tool, parameters=NO_PARAMETERS) for tool in tools]
