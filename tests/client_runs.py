"""Run the programs of ``client_programs``, each with the library that it uses and nothing of the tests' environment."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from client_libraries import NODE, OPENAI_1, OPENAI_2, PROGRAMS, PYTHON, python_environment
from installed import Installed

__all__ = ["AGENTS", "CLIENTS", "Client"]


@dataclass(frozen=True)
class Client:
    """A program, and the libraries that it needs."""

    program: str
    libraries: Installed

    def require(self) -> None:
        """Skip the test where the libraries are missing, or fail it where ``OCP_REQUIRE_CLIENTS=1``."""
        if self.libraries.find() is None:
            reason = f"{self.libraries.what} are not installed (python tests/client_libraries.py install)"
            if os.environ.get("OCP_REQUIRE_CLIENTS") == "1":
                pytest.fail(reason)
            pytest.skip(reason)

    async def run(self, argument: object) -> Any:
        """Run the program to its end, and return what it printed; argument and output are JSON.

        Cancellation: the program is killed.
        """
        with tempfile.TemporaryDirectory() as home:
            done = await trio.run_process(
                [*self._command(), json.dumps(argument)],
                env=python_environment(self.libraries.folder, Path(home)),
                cwd=self.libraries.folder,
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def _command(self) -> list[str]:
        path = PROGRAMS / self.program
        if path.suffix == ".py":
            # Without the packages of the environment that runs the tests.
            return [sys.executable, "-S", str(path)]
        # As text, so that its imports are looked up from the working folder.
        node = self.libraries.folder / "node_modules/.bin/node"
        return [str(node), "--input-type=module", "--eval", path.read_text()]


CLIENTS = {
    "openai 1": Client("openai_client.py", OPENAI_1),
    "openai 2": Client("openai_client.py", OPENAI_2),
    "openai 3": Client("openai_client.py", PYTHON),
    "litellm": Client("litellm_client.py", PYTHON),
    "langchain-openai": Client("langchain_client.py", PYTHON),
    "pydantic-ai": Client("pydantic_ai_client.py", PYTHON),
    "openai for Node": Client("openai_client.mjs", NODE),
    "AI SDK": Client("ai_sdk_client.mjs", NODE),
}
"""Those that take a list of questions, and print what they saw of each answer."""

AGENTS = {
    "openai": Client("openai_agent.py", PYTHON),
    "pydantic-ai": Client("pydantic_ai_agent.py", PYTHON),
    "openai for Node": Client("openai_agent.mjs", NODE),
    "AI SDK": Client("ai_sdk_agent.mjs", NODE),
}
"""Those that take one question, let the model call their tool, and print what it was called with and what was said."""
