"""The fake CLI asks for the caller's tools, and calls them, as the real one did."""

import json
from pathlib import Path
from typing import Any

import captures
import trio
from fake_driver import Json, Shape, control, running, shape, shapes, user
from fake_program import install
from fake_script import block_end, client_call, client_results, prompt, success, text

WEATHER = {"name": "get_weather", "description": "Weather", "inputSchema": {"type": "object"}}
RUN = {"command": "echo one", "description": "d"}


def reply(line: Json, tool: Json) -> Json:
    message = line["request"]["message"]
    result: Any = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "sunny"}]},
    }.get(message["method"], {})
    answer = {"mcp_response": {"jsonrpc": "2.0", "id": message.get("id"), "result": result}}
    response = {"subtype": "success", "request_id": line["request_id"], "response": answer}
    return {"type": "control_response", "response": response}


async def play(folder: Path, *steps: Any, tool: Json = WEATHER) -> list[Json]:
    """Return what is printed in a turn whose questions are answered at once."""
    printed: list[Json] = []
    with trio.fail_after(20):
        async with running(install(folder)) as child:
            await child.send(control("initialize", sdkMcpServers=["client"]), user(prompt(*steps)))
            while (line := await child.line()) is not None:
                printed.append(line)
                if line["type"] == "control_request":
                    await child.send(reply(line, tool))
                if line["type"] == "result":
                    break
    return printed


def neutral(found: list[Shape]) -> list[Shape]:
    """Leave out what the two differ in for other reasons: the answer to initialize, and how deltas are cut."""
    kept = [each for each in found if each[0] != "control_response" and each[1] != "content_block_delta"]
    return [(kind, name, frozenset(path for path in paths if "arguments" not in path)) for kind, name, paths in kept]


async def test_two_calls_have_the_lines_of_the_capture(tmp_path: Path) -> None:
    script = [*[client_call("get_weather", **RUN)] * 2, client_results(), text("a", "b"), success()]

    played = await play(tmp_path, *script)

    real = captures.stdout("15-sdk-mcp-two-tools")
    assert neutral([shape(line) for line in played]) == neutral(shapes(real))
    ours, theirs = played[-1], json.loads(real.splitlines()[-1])
    assert [ours[key] for key in ("num_turns", "stop_reason", "usage")] == [
        theirs[key] for key in ("num_turns", "stop_reason", "usage")
    ]


async def test_a_call_after_a_text_has_the_lines_of_the_capture(tmp_path: Path) -> None:
    script = [text("a"), block_end(), client_call("get_weather", city="Rome"), client_results(), text("b"), success()]

    played = await play(tmp_path, *script)

    real = captures.stdout("15-sdk-mcp-tool-held-3s")
    assert neutral([shape(line) for line in played]) == neutral(shapes(real))


async def test_calls_that_change_nothing_do_not_wait_for_each_other(tmp_path: Path) -> None:
    script = [*[client_call("get_weather", **RUN)] * 2, client_results(), text("a"), success()]

    played = await play(tmp_path, *script, tool={**WEATHER, "annotations": {"readOnlyHint": True}})

    kinds = [line["type"] for line in played if line["type"] in {"control_request", "user"}]
    assert kinds == [*["control_request"] * 5, "user", "user"]
