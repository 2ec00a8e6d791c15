"""The ``claude`` CLI as a backend: one child per request, driven over ``--input-format stream-json``."""

from ocp_trio.claude.absent import AbsentClaude
from ocp_trio.claude.backend import ClaudeBackend, open_claude
from ocp_trio.claude.locate import HOW_TO_INSTALL, find_claude
from ocp_trio.claude.program import watch_program

__all__ = ["HOW_TO_INSTALL", "AbsentClaude", "ClaudeBackend", "find_claude", "open_claude", "watch_program"]
