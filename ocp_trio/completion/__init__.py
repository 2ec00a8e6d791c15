"""The vocabulary between backends and whoever consumes them: requests in, events out.

A backend turns a `CompletionRequest` into a stream of *batches*: tuples of events, one batch for everything decoded
from one read. An empty batch means that upstream is alive and said nothing a client sees. Exactly one terminal event
(`Completed` or `Failed`) ends every stream.
"""

from ocp_trio.backend_state import BackendState
from ocp_trio.completion.backend import Backend, Model
from ocp_trio.completion.events import (
    Activity,
    Batch,
    Completed,
    Event,
    Failed,
    FinishReason,
    Refusal,
    Started,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ocp_trio.completion.request import (
    CompletionRequest,
    Image,
    JsonFormat,
    Message,
    Part,
    Sampling,
    Text,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
)

__all__ = [
    "Activity",
    "Backend",
    "BackendState",
    "Batch",
    "Completed",
    "CompletionRequest",
    "Event",
    "Failed",
    "FinishReason",
    "Image",
    "JsonFormat",
    "Message",
    "Model",
    "Part",
    "Refusal",
    "Sampling",
    "Started",
    "Text",
    "TextDelta",
    "TextEnd",
    "ThinkingDelta",
    "ThinkingEnd",
    "Tool",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
    "ToolResult",
    "ToolUse",
    "Usage",
]
