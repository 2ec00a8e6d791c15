"""OpenCode Go as a backend: Kimi, GLM, MiniMax, DeepSeek, Qwen and others over HTTP, guarded against stalls."""

from ocp_trio.opencode_go.backend import BASE_URL, OpenCodeGoBackend, open_opencode_go

__all__ = ["BASE_URL", "OpenCodeGoBackend", "open_opencode_go"]
