"""Find or install the pinned client libraries that tests run against the server.

``python tests/client_libraries.py install`` puts them into the cache of `installed`. The libraries for Python stand
beside the tests' own environment, since each wants other versions; those for Node bring the Node that they want.
"""

import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from installed import Installed, install_from_shell, run, run_npm

__all__ = ["NODE", "OPENAI_1", "OPENAI_2", "PINS", "PROGRAMS", "PYTHON", "python_environment"]

PROGRAMS = Path(__file__).parent / "client_programs"
"""The programs that use the libraries, and what npm installs for those in JavaScript."""
_NODE = ("package.json", "package-lock.json")


def _python(*requirements: str, imports: str) -> Installed:
    def fill(folder: Path, home: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "--no-compile", "--target", str(folder), *requirements], os.environ)
        # Tried, and with that compiled: what is imported, and no more.
        run([sys.executable, "-S", "-c", f"import {imports}"], python_environment(folder, home))

    what = ", ".join(requirements)
    digest = hashlib.sha256(what.encode()).hexdigest()[:12]
    return Installed(what, f"python{sys.version_info.major}.{sys.version_info.minor}-{digest}", fill)


def python_environment(folder: Path, home: Path) -> dict[str, str]:
    """Return the whole environment of a Python that has the libraries in ``folder``, if it is started with ``-S``."""
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "PYTHONPATH": str(folder),
        # Otherwise litellm asks the Internet for prices.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def _node() -> Installed:
    def fill(folder: Path, home: Path) -> None:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        run_npm(folder, home, "ci")

    files = {name: (PROGRAMS / name).read_bytes() for name in _NODE}
    wanted = json.loads(files["package.json"])["dependencies"]
    what = ", ".join(f"{name}@{version}" for name, version in wanted.items())
    return Installed(what, f"node-{hashlib.sha256(b''.join(files.values())).hexdigest()[:12]}", fill)


OPENAI_1 = _python("openai==1.109.1", imports="openai")
OPENAI_2 = _python("openai==2.54.0", imports="openai")
PYTHON = _python(
    *("openai==3.57.0", "litellm==1.110.2", "langchain-openai==1.7.4", "pydantic-ai-slim[openai]==2.68.0"),
    imports="litellm, langchain_openai, pydantic_ai.models.openai",
)
NODE = _node()
_ALL = (PYTHON, NODE, OPENAI_1, OPENAI_2)
PINS = [pin for library in _ALL for pin in library.what.split(", ")]
"""Each library and its version, as its registry writes it."""


def _main(arguments: list[str]) -> int:
    if arguments != ["install"]:
        sys.stdout.write("usage: python tests/client_libraries.py install\n")
        return 2
    # At once: each waits for its registry most of the time.
    with ThreadPoolExecutor(len(_ALL)) as threads:
        return 0 if all(list(threads.map(install_from_shell, _ALL))) else 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
