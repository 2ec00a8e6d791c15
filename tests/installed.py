"""Programs of others that tests run: pinned, installed once into a folder of the cache, whole or not at all.

The cache is ``$OCP_TEST_CACHE``, or ``ocp-trio-tests`` in ``$XDG_CACHE_HOME`` or ``~/.cache``. Nothing else outside
temporary folders is written.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CACHE", "InstallError", "Installed", "install_from_shell", "run", "run_npm", "tool"]


class InstallError(Exception):
    """A program could not be installed; the message is for whoever ran it."""


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("OCP_TEST_CACHE") or base / "ocp-trio-tests").absolute()


# Looked up once: tests run with a temporary HOME.
CACHE = _cache()


@dataclass(frozen=True)
class Installed:
    """Something that is there, or can be installed.

    Attributes:
        what: Its name and version, for people.
        name: Its folder in the cache; another version has another.
        fill: Installs it into a folder, with an empty HOME as the second argument.
    """

    what: str
    name: str
    fill: Callable[[Path, Path], None]

    @property
    def folder(self) -> Path:
        return CACHE / self.name

    def find(self) -> Path | None:
        """Return its folder; None where it is not installed."""
        return self.folder if self.folder.is_dir() else None

    def install(self) -> Path:
        """Install it unless it is there, and return its folder; two at once install it once.

        Raises:
            InstallError: what installs it is missing or failed, or installed something else.
        """
        CACHE.mkdir(parents=True, exist_ok=True)
        with _locked(CACHE / f"{self.name}.lock"):
            if (found := self.find()) is not None:
                return found
            prefix = f"partial-{self.name}-"
            for leftover in CACHE.glob(f"{prefix}*"):
                shutil.rmtree(leftover)
            with tempfile.TemporaryDirectory(prefix=prefix, dir=CACHE) as partial:
                folder, home = Path(partial, "folder"), Path(partial, "home")
                folder.mkdir()
                home.mkdir()
                self.fill(folder, home)
                # Whole or not at all: `find` never sees half an installation.
                folder.rename(self.folder)
        return self.folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(command: list[str], env: Mapping[str, str]) -> str:
    """Run a command to its end and return its output; one that fails is an `InstallError`."""
    result = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        # npm's last line only names its log.
        first = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()[:2]
        raise InstallError(f"{Path(command[0]).name} ended with status {result.returncode}: {'; '.join(first)}")
    return result.stdout


def run_npm(folder: Path, home: Path, *command: str) -> None:
    """Run npm on ``folder`` with a HOME of its own, but with the registry configuration of the real one."""
    configured = (os.environ.get(name) for name in ("NPM_CONFIG_USERCONFIG", "npm_config_userconfig"))
    options = {
        "--prefix": str(folder),
        "--cache": str(home / "npm"),
        "--userconfig": next(filter(None, configured), str(Path.home() / ".npmrc")),
    }
    flags = [text for option in options.items() for text in option]
    # npm may leave out a package's own install step, so it is left out always.
    flags += ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    run([tool("npm"), *command, *flags], {**os.environ, "HOME": str(home)})


def tool(name: str) -> str:
    """Return the path of a program that installs others."""
    if (path := shutil.which(name)) is None:
        raise InstallError(f"this machine has no {name}, which installs it")
    return path


def install_from_shell(program: Installed) -> bool:
    """Install a program, saying in a line what becomes of it; return whether it is there."""
    if (found := program.find()) is not None:
        _say(f"{program.what} is there: {found}")
        return True
    _say(f"installing {program.what} into {CACHE}")
    try:
        program.install()
    except (InstallError, OSError) as error:
        _say(f"{program.what} could not be installed: {error}")
        return False
    return True


def _say(line: str) -> None:
    # In one piece: several may be installed at once.
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
