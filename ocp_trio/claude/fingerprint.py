"""Tell whether a child that was started before is what one started now would be."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["fingerprint"]


def fingerprint(binary: str, environment: Mapping[str, str]) -> list[tuple[int, int, int] | None]:
    """Tell which program and which login a child started now would have."""
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment["HOME"], ".claude"))
    return [_state_of(path) for path in (Path(binary), folder / ".credentials.json")]


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_ino, state.st_size
