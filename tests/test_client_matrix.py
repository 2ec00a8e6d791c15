"""Client libraries of all kinds work with the server as they are: whole answers, streams, heartbeats, errors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
import trio
from client_runs import CLIENTS, Client
from fake_program import install
from fake_script import failed_result, prompt, success, text, wait_for
from server_process import Server, shared_server

from ocp_trio.streaming.groups import unwrap_lone_error

KEY = "made-up"
USAGE = (3, 7, 2, 1)
TOKENS = [6, 7]
"""Those of the prompt, cached ones included, and of the answer."""
WHOLE = {"pieces": ["Hello"], "finish": "stop", "tokens": TOKENS, "error": None}
STREAMED = {**WHOLE, "pieces": ["Hel", "lo"]}
PATIENCE = 240
"""Seconds for all questions; most of them go into importing the biggest library on a busy machine."""
FORMATS = ["comment", "comment-line", "empty-delta"]


BEATING = [f"{form}, silent {place}" for form in FORMATS for place in ("first", "later")]
"""The streams in which the server has to beat."""
BLANKS = "silent before a whole answer"
"""The plain question whose answer begins with white space."""


Error: TypeAlias = tuple[str, int | None, str | None]


class Errors(NamedTuple):
    """What a client makes of our errors: the type of its exception, the status and the code."""

    wrong_key: Error = ("AuthenticationError", 401, "invalid_api_key")
    unknown_model: Error = ("NotFoundError", 404, "model_not_found")
    broken_stream: Error = ("APIError", None, "upstream_error")


ERRORS = {
    **dict.fromkeys(CLIENTS, Errors()),
    "litellm": Errors(
        ("AuthenticationError", 401, None), ("NotFoundError", 404, None), ("MidStreamFallbackError", 500, None)
    ),
    "langchain-openai": Errors(
        ("OpenAIAuthenticationError", 401, "invalid_api_key"), ("OpenAIModelNotFoundError", 404, "model_not_found")
    ),
    "pydantic-ai": Errors(
        ("ModelAuthenticationError", 401, None), ("ModelNotFoundError", 404, None), ("ModelServerError", 500, None)
    ),
    "AI SDK": Errors(
        ("AI_APICallError", 401, "invalid_api_key"),
        ("AI_APICallError", 404, "model_not_found"),
        ("AI_StreamProviderError", None, None),
    ),
}


def failed(error: Error, *pieces: str) -> dict[str, Any]:
    """Return what a client saw that raised ``error`` after ``pieces``."""
    return {"pieces": list(pieces), "finish": None, "tokens": None, "error": list(error)}


@dataclass(frozen=True)
class Question:
    """What a client asks.

    Attributes:
        content: The script of the child that answers it.
        gate: The file for which that child waits in silence; None if it does not.
    """

    content: str
    stream: bool = True
    key: str = KEY
    model: str = "sonnet"
    headers: dict[str, str] = field(default_factory=dict)
    gate: Path | None = None


def questions(folder: Path) -> dict[str, Question]:
    """Return all that a client is asked; ``folder`` takes the gates."""
    end = success(usage=USAGE)
    hello = prompt(text("Hel"), text("lo"), end)
    broken = prompt(text("a"), failed_result("API Error: 500 no", status=500))
    asked = {
        "whole": Question(hello, stream=False),
        "stream": Question(hello),
        "wrong key": Question(hello, key="wrong"),
        "unknown model": Question(hello, model="gpt-4o"),
        "broken stream": Question(broken),
    }
    for name in (BLANKS, *BEATING):
        form, _, place = name.partition(", silent ")
        gate, headers = folder / name, {"x-session-id": name}
        said = [text("Hel"), text("lo"), end]
        said.insert(1 if place == "later" else 0, wait_for(gate))
        if name in BEATING:
            headers |= {"x-ocp-heartbeat": "100", "x-ocp-heartbeat-format": form}
        asked[name] = Question(prompt(*said), stream=name in BEATING, headers=headers, gate=gate)
    return asked


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"CLAUDE_AUTH_MODE": "shared", "PROXY_API_KEY": KEY, "CLAUDE_NONSTREAM_KEEPALIVE": "100"}
    with shared_server(install(tmp_path_factory.mktemp("claude")), **settings) as server:
        yield server


@dataclass(frozen=True)
class Report:
    """What a client saw of each answer."""

    client: str
    seen: dict[str, Any]


@pytest.fixture(scope="module", params=CLIENTS)
def report(request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Report:
    client = CLIENTS[request.param]
    client.require()
    asked = questions(tmp_path_factory.mktemp("gates"))
    return Report(request.param, trio.run(ask_all, client, server, asked))


async def ask_all(client: Client, server: Server, asked: dict[str, Question]) -> dict[str, Any]:
    """Ask one question after the other; a child that waits goes on when the server has beaten, and not before."""
    answers: list[Any] = []

    async def run() -> None:
        url = f"{server.url}/v1"
        answers.extend(
            await client.run(
                [
                    {"url": url, **{name: value for name, value in vars(question).items() if name != "gate"}}
                    for question in asked.values()
                ]
            )
        )

    with trio.fail_after(PATIENCE), unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            for name, question in asked.items():
                if question.gate:
                    await server.wait_logged("heartbeat_active", session=name)
                    question.gate.touch()
    return dict(zip(asked, answers, strict=True))


def test_a_whole_answer_comes_with_its_usage(report: Report) -> None:
    assert report.seen["whole"] == WHOLE


def test_a_stream_comes_piece_by_piece_and_ends_with_its_usage(report: Report) -> None:
    assert report.seen["stream"] == STREAMED


@pytest.mark.parametrize("silence", BEATING)
def test_heartbeats_in_a_silence_change_nothing(report: Report, silence: str) -> None:
    assert report.seen[silence] == STREAMED


def test_white_space_before_a_whole_answer_changes_nothing(report: Report) -> None:
    assert report.seen[BLANKS] == WHOLE


def test_a_wrong_key_is_an_authentication_error(report: Report) -> None:
    assert report.seen["wrong key"] == failed(ERRORS[report.client].wrong_key)


def test_an_unknown_model_is_not_found(report: Report) -> None:
    assert report.seen["unknown model"] == failed(ERRORS[report.client].unknown_model)


def test_an_error_in_mid_stream_is_raised_after_what_came_before_it(report: Report) -> None:
    assert report.seen["broken stream"] == failed(ERRORS[report.client].broken_stream, "a")
