"""Find or install the pinned ``claude`` CLI that tests may run against a mock of its API.

``python tests/real_cli.py install`` puts it into the cache of `installed`.
"""

import os
import sys
from pathlib import Path

from installed import Installed, InstallError, install_from_shell, run, run_npm, tool

__all__ = ["VERSION", "environment", "find"]

VERSION = "2.1.332"
_PACKAGE = Path("node_modules/@anthropic-ai/claude-code")
# That is its name on Linux, too.
_EXECUTABLE = _PACKAGE / "bin/claude.exe"


def environment(home: Path, url: str) -> dict[str, str]:
    """Return the whole environment of a run that talks to the mock at ``url`` and writes nowhere but into ``home``."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "ANTHROPIC_API_KEY": "sk-ant-made-up",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def _fill(folder: Path, home: Path) -> None:
    run_npm(folder, home, "install", f"@anthropic-ai/claude-code@{VERSION}")
    run([tool("node"), str(folder / _PACKAGE / "install.cjs")], {**os.environ, "HOME": str(home)})
    # Port 9 discards; nothing asks the API.
    version = run([str(folder / _EXECUTABLE), "--version"], environment(home, "http://127.0.0.1:9"))
    if version.split()[:1] != [VERSION]:
        raise InstallError(f"what npm installed says it is {version.strip()!r}")


_CLI = Installed(f"claude {VERSION}", f"claude-{VERSION}", _fill)


def find() -> Path | None:
    """Return the executable of the pinned CLI; None where it is not installed."""
    folder = _CLI.find()
    return folder / _EXECUTABLE if folder else None


def _main(arguments: list[str]) -> int:
    if arguments != ["install"]:
        sys.stdout.write("usage: python tests/real_cli.py install\n")
        return 2
    return 0 if install_from_shell(_CLI) else 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
