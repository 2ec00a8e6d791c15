"""What README says is what the code does."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from textwrap import indent
from typing import Any

import click
import fake_program
import pytest
import trio
from client_libraries import PINS
from commands import leaves
from mock_opencode import KEY, open_mock_opencode
from shell import ENV, LIMIT, open_python, read_all

from ocp_trio.cli import main
from ocp_trio.logs import LogRing
from ocp_trio.openai.requests import parameter_table
from ocp_trio.settings import Settings, descriptions
from ocp_trio.web import Lifecycle, create_app
from ocp_trio.web.described import App
from ocp_trio.web.hooks import PUBLIC

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def default_of(each: Any) -> str:
    """Return a setting's default as the environment would give it; empty where it is not set."""
    shown = each.metadata["kind"].show(each.default)
    return str(int(shown)) if isinstance(shown, bool) else "" if shown in ("", []) else str(shown)


def settings_rows() -> list[str]:
    rows = []
    for each in fields(Settings):
        default = default_of(each)
        shown = f" ({default})" if default else ""
        rows.append(f"| `{each.metadata['name']}`{shown} | {descriptions()[each.name]} |")
    return rows


def test_every_setting_stands_in_the_table_with_its_default_and_its_meaning() -> None:
    table = README.partition("## Settings")[2].partition("\n## ")[0]

    assert [line for line in table.splitlines() if line.startswith("| `")] == settings_rows()


def test_every_command_stands_in_the_table_with_its_arguments_and_what_it_does() -> None:
    rows = []
    for path, command in leaves(main):
        arguments = [
            each.make_metavar(click.Context(command)) for each in command.params if each.param_type_name == "argument"
        ]
        rows.append(f"| `ocp-trio {' '.join([*path, *arguments])}` | {command.get_short_help_str(200)} |")
    table = README.partition("## Commands")[2].partition("\n## ")[0]

    assert [line for line in table.splitlines() if line.startswith("| `")] == rows


def endpoints(app: App) -> dict[str, set[str]]:
    """Return who may call which endpoints."""
    found: dict[str, set[str]] = {"anybody": set(), "any key": set(), "the administrator": set()}
    for rule in app.url_map.iter_rules():
        if operation := app.operations.get(rule.endpoint):
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
            who = "the administrator" if operation.admin else "anybody" if path in PUBLIC else "any key"
            found[who] |= {f"{method} {path}" for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    return found


async def test_every_endpoint_stands_in_the_row_of_who_may_call_it() -> None:
    app = create_app((), Settings(), ring=LogRing(), lifecycle=Lifecycle())
    table = README.partition("## Run it for others")[2].partition("\n## ")[0]
    rows = {
        line.split("|")[1].strip(): set(re.findall(r"`([A-Z]+ /[^`]*)`", line))
        for line in table.splitlines()
        if line.startswith(("| any", "| the"))
    }

    assert rows == endpoints(app)


def test_every_parameter_stands_in_the_row_of_what_becomes_of_it() -> None:
    table = README.partition("## Requests")[2].partition("\n## ")[0]
    rows = {
        re.findall(r"\w+", line)[0]: set(re.findall(r"`(\w+)`", line.split("|")[2]))
        for line in table.splitlines()
        if line.startswith("| ") and "---" not in line
    }

    for treatment in ("honoured", "passed", "ignored", "refused"):
        expected = {name for name, becomes in parameter_table(tools_supported=True).items() if becomes == treatment}
        assert rows[treatment] == expected


def test_every_client_library_that_is_tried_is_named_with_its_version() -> None:
    requests = README.partition("## Requests")[2].partition("\n## ")[0]

    assert sorted(re.findall(r"`([^`\s]+(?:==|@)\d[^`\s]*)`", requests)) == sorted(PINS)


def test_every_row_of_who_ends_a_request_names_a_test_that_exists() -> None:
    table = README.partition("## Who ends a request")[2].partition("\n## ")[0]
    named = re.findall(r"`(test_\w+)`", table)
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))

    assert len(named) == len([line for line in table.splitlines() if line.startswith("| ")]) - 2
    assert [name for name in named if f"def {name}(" not in sources] == []


def test_the_program_that_embeds_the_backend_runs_as_it_stands(tmp_path: Path) -> None:
    [program] = [code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "open_claude" in code]
    claude = fake_program.install(tmp_path)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"HOME": str(tmp_path), "PATH": os.defpath, "CLAUDE_BIN": str(claude)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("ok", "")


ASK_OPENCODE_GO = """
import os
import trio
from ocp_trio.completion import CompletionRequest, Message, Text
from ocp_trio.opencode_go import open_opencode_go

open_opencode_go.__wrapped__.__kwdefaults__["base_url"] = os.environ["PROVIDER"]
question = CompletionRequest(model="kimi-k3", messages=(Message("user", (Text("Hello"),)),))


async def main():
%s

trio.run(main)
"""


async def test_what_asks_opencode_go_runs_as_it_stands(tmp_path: Path) -> None:
    [lines] = [code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "open_opencode_go" in code]
    with trio.fail_after(LIMIT):
        async with open_mock_opencode() as provider:
            env = {**ENV, "HOME": str(tmp_path), "OPENCODE_API_KEY": KEY, "PROVIDER": provider.url}
            async with open_python(ASK_OPENCODE_GO % indent(lines, "    "), env=env) as child:
                told = (await read_all(child)).decode()

    assert re.findall(r"\w+(?=\()", told)[:3] == ["Started", "Activity", "TextDelta"]


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:scripts|tests|ocp_trio)/[\w./]+)`", README))))
def test_every_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()
