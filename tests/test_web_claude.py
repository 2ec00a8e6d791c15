"""What a client asks of an answer reaches the CLI, and what ends an answer early ends its child."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend, open_fake
from fake_script import Step, message_end, message_start, own_user_message, prompt, success, text
from fake_script import sleep as wait
from watching import wait_gone
from web_app import WebApp, frames, open_web_app

NEVER = 600  # seconds: the child would go on for this long


def says(*steps: Step) -> list[dict[str, str]]:
    """Return messages whose answer is these steps."""
    return [{"role": "user", "content": prompt(*steps)}]


@asynccontextmanager
async def open_app(folder: Path) -> AsyncIterator[tuple[WebApp, FakeBackend]]:
    async with open_fake(folder) as fake, open_web_app(fake.backend) as app:
        yield app, fake


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("limit", [1, 4711, 2**31 - 1])
async def test_a_limit_is_given_to_the_cli_as_it_was_sent(tmp_path: Path, name: str, limit: int) -> None:
    async with open_app(tmp_path) as (app, fake):
        body: dict[str, Any] = {"model": "sonnet", "messages": says(), name: limit}
        status, _ = await app.ask(**body)
        record = await fake.record()

    [settings] = [each["settings"] for each in record.controls if each["subtype"] == "apply_flag_settings"]
    assert status == 200
    assert settings["env"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == str(limit)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_answer_is_told_as_cut_and_what_the_cli_asks_further_is_not_seen(
    tmp_path: Path, stream: bool
) -> None:
    asked_on = (own_user_message("Resume directly."), message_start(), text("more"), wait(NEVER), success())
    messages = says(text("part"), message_end("max_tokens"), *asked_on)

    async with open_app(tmp_path) as (app, fake):
        _, body = await app.ask(model="sonnet", messages=messages, max_tokens=1, stream=stream)
        record = await fake.record()
        await wait_gone(record.pid)

    if stream:
        assert frames(body) == ["role", "part", "finish length", "[DONE]"]
    else:
        [choice] = json.loads(body)["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("part", "length")


async def test_a_stop_sequence_ends_the_child_and_usage_is_what_it_had_told(tmp_path: Path) -> None:
    messages = says(text("Hello EN", "D and on"), wait(NEVER), success())

    async with open_app(tmp_path) as (app, fake):
        _, body = await app.ask(model="sonnet", messages=messages, stop="END")
        record = await fake.record()
        await wait_gone(record.pid)

    answer = json.loads(body)
    assert (answer["choices"][0]["message"]["content"], answer["choices"][0]["finish_reason"]) == ("Hello ", "stop")
    assert answer["usage"]["prompt_tokens"] > 0


async def test_a_second_attempt_has_the_first_one_as_its_history(tmp_path: Path) -> None:
    messages = says(text("Sorry."), success())

    async with open_app(tmp_path) as (app, fake):
        _, body = await app.ask(model="sonnet", messages=messages, response_format={"type": "json_object"})
        records = fake.records()

    conversation = records[1].queries[0]
    assert json.loads(body)["choices"][0]["message"]["refusal"].startswith("No usable JSON in 3 attempts")
    assert [role for role, _ in conversation] == ["user", "assistant", "user"]
    assert conversation[1][1] == [{"type": "text", "text": "Sorry."}]
    assert len(records) == 3


def systems(record: Any) -> list[str]:
    [initialize] = [each for each in record.controls if each["subtype"] == "initialize"]
    prompts: list[str] = initialize["systemPrompt"]
    return prompts


async def test_the_schema_stands_in_the_system_prompt_and_not_in_the_arguments(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"secret": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}

    async with open_app(tmp_path) as (app, fake):
        _, body = await app.ask(
            model="sonnet", messages=says(text('{"secret":"a"}'), success()), response_format=wanted
        )
        record = await fake.record()

    assert json.loads(body)["choices"][0]["message"]["content"] == '{"secret":"a"}'
    assert json.dumps(schema, separators=(",", ":")) in systems(record)[0]
    assert "secret" not in " ".join(record.argv)
