"""Names of the caller's tools as the CLI shows them to the model, and back.

The CLI puts the name of their server in front and replaces what the API does not take (measured on 2.1.332), so no
name of a caller's can be taken for one of the CLI's own tools.
"""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["SERVER", "ToolNames", "safe_id"]

SERVER: Final = "client"
"""Name of the MCP server that offers the caller's tools."""
_PREFIX = f"mcp__{SERVER}__"
_LONGEST = 100
"""Characters of a name; the API takes 128 with the prefix, and a tool with a longer one is dropped without a word."""
_NOT_TAKEN = re.compile(r"[^a-zA-Z0-9_-]")


class ToolNames:
    """The names of the tools on offer, each told apart from all others.

    Args:
        names: As the caller calls them; one that is repeated counts once.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._short: dict[str, str] = {}
        self._callers: dict[str, str] = {}
        offered = dict.fromkeys(names)
        # A name that needs no change keeps it, whatever the others become.
        for name in sorted(offered, key=lambda name: _fit(name) != name):
            short = _fit(name)
            count = 1
            while _PREFIX + short in self._callers:
                count += 1
                short = f"{_fit(name)[: _LONGEST - 8]}_{count}"
            self._short[name] = short
            self._callers[_PREFIX + short] = name

    def offered(self, name: str) -> str:
        """Return the name under which the server offers a tool; also that of one which it does not."""
        return self._short.get(name) or _fit(name)

    def shown(self, name: str) -> str:
        """Return the name under which the model knows a tool; of one that is not on offer, a name like the others'."""
        return _PREFIX + self.offered(name) if self._callers else _fit(name)

    def callers(self, shown: str) -> str | None:
        """Return what the caller calls the tool that the model calls ``shown``; None if it is none of the caller's."""
        return self._callers.get(shown)


def _fit(name: str) -> str:
    return _NOT_TAKEN.sub("_", name)[:_LONGEST] or "_"


def safe_id(call_id: str) -> str:
    """Return the id of a call as the API takes it: another model may have made it up."""
    return _NOT_TAKEN.sub("_", call_id)
