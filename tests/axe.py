"""Find or install axe-core, which audits a page for what keeps people from using it.

``python tests/axe.py install`` puts it into the cache of `installed`.
"""

import os
import sys
from pathlib import Path

import pytest
from installed import Installed, install_from_shell, run_npm

__all__ = ["axe_script"]

_WHAT = "axe-core@4.14.1"


def _fill(folder: Path, home: Path) -> None:
    run_npm(folder, home, "install", _WHAT)


_AXE = Installed(_WHAT, _WHAT, _fill)


def axe_script() -> str:
    """Return its script; without it skip the test, or fail it where ``OCP_REQUIRE_CHROMIUM=1``."""
    if (found := _AXE.find()) is not None:
        return (found / "node_modules/axe-core/axe.min.js").read_text()
    reason = "axe-core is not installed"
    if os.environ.get("OCP_REQUIRE_CHROMIUM") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


if __name__ == "__main__":
    if sys.argv[1:] != ["install"]:
        sys.exit("usage: python tests/axe.py install")
    sys.exit(0 if install_from_shell(_AXE) else 1)
