"""Find or install the pinned ``claude`` CLI that tests may run against a mock of its API.

``python tests/real_cli.py install`` puts it into a cache folder: ``$OCP_TEST_CACHE``, or ``ocp-trio-tests`` in
``$XDG_CACHE_HOME`` or ``~/.cache``. Nothing else outside temporary folders is written.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["VERSION", "InstallError", "environment", "find", "install"]

VERSION = "2.1.332"
_PACKAGE = Path("node_modules/@anthropic-ai/claude-code")
# That is its name on Linux, too.
_EXECUTABLE = _PACKAGE / "bin/claude.exe"


class InstallError(Exception):
    """The CLI could not be installed; the message is for whoever ran it."""


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("OCP_TEST_CACHE") or base / "ocp-trio-tests").absolute()


# Looked up once: tests run with a temporary HOME.
CACHE = _cache()
_FOLDER = CACHE / f"claude-{VERSION}"
_PARTIAL = "partial-"


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


def find() -> Path | None:
    """Return the executable of the pinned CLI; None where it is not installed."""
    executable = _FOLDER / _EXECUTABLE
    return executable if executable.is_file() else None


def install() -> Path:
    """Install the pinned CLI unless it is there, and return its executable; two at once install it once.

    Raises:
        InstallError: npm or node is missing or failed, or what they installed is not the pinned version.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / "lock"):
        if (found := find()) is not None:
            return found
        for leftover in CACHE.glob(f"{_PARTIAL}*"):
            shutil.rmtree(leftover)
        with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=CACHE) as partial:
            folder, home = Path(partial, "claude"), Path(partial, "home")
            home.mkdir()
            _run_npm(folder, home)
            _check_version(folder / _EXECUTABLE, home)
            # Whole or not at all: `find` never sees half an installation.
            shutil.rmtree(_FOLDER, ignore_errors=True)
            folder.rename(_FOLDER)
    return _FOLDER / _EXECUTABLE


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run_npm(folder: Path, home: Path) -> None:
    """Install into ``folder`` with a HOME of its own, but with the registry configuration of the real one."""
    npm, node = (_tool(name) for name in ("npm", "node"))
    configured = (os.environ.get(name) for name in ("NPM_CONFIG_USERCONFIG", "npm_config_userconfig"))
    options = {
        "--prefix": str(folder),
        "--cache": str(home / "npm"),
        "--userconfig": next(filter(None, configured), str(Path.home() / ".npmrc")),
    }
    env = {**os.environ, "HOME": str(home)}
    flags = [text for option in options.items() for text in option]
    flags += ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    # npm may leave out the package's own install step, so it is left out always, and run here.
    _run([npm, "install", "--ignore-scripts", *flags, f"@anthropic-ai/claude-code@{VERSION}"], env)
    _run([node, str(folder / _PACKAGE / "install.cjs")], env)


def _tool(name: str) -> str:
    if (path := shutil.which(name)) is None:
        raise InstallError(f"this machine has no {name}, which installs it")
    return path


def _check_version(executable: Path, home: Path) -> None:
    # Port 9 discards; nothing asks the API.
    version = _run([str(executable), "--version"], environment(home, "http://127.0.0.1:9"))
    if version.split()[:1] != [VERSION]:
        raise InstallError(f"what npm installed says it is {version.strip()!r}")


def _run(command: list[str], env: dict[str, str]) -> str:
    result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        # npm's last line only names its log.
        first = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()[:2]
        raise InstallError(f"{Path(command[0]).name} ended with status {result.returncode}: {'; '.join(first)}")
    return result.stdout


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _main(arguments: list[str]) -> int:
    if arguments != ["install"]:
        _say("usage: python tests/real_cli.py install")
        return 2
    if (found := find()) is not None:
        _say(f"claude {VERSION} is there: {found}")
        return 0
    _say(f"installing claude {VERSION} with npm into {CACHE}")
    try:
        install()
    except (InstallError, OSError) as error:
        _say(f"claude {VERSION} could not be installed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
