"""What a child is told of a request: settings, history with its true roles, and the last message as text."""

import json
from typing import Any, Literal

import pytest

from ocp_trio.claude.stdin import conversation
from ocp_trio.completion import CompletionRequest, Image, Message, Part, Text, ToolResult, ToolUse

MODEL = "claude-sonnet-4-6"


def message(role: Literal["user", "assistant"], *parts: Part | str) -> Message:
    return Message(role, tuple(Text(part) if isinstance(part, str) else part for part in parts))


def user(*parts: Part | str) -> Message:
    return message("user", *parts)


def assistant(*parts: Part | str) -> Message:
    return message("assistant", *parts)


def steps(*messages: Message, **fields: Any) -> list[tuple[int, list[dict[str, Any]]]]:
    """Return for each step what it waits for, and its lines."""
    request = CompletionRequest(model=MODEL, messages=messages, **fields)
    return [(step.acks, [json.loads(line) for line in step.data.splitlines()]) for step in conversation(request)]


def controls(**fields: Any) -> list[dict[str, Any]]:
    """Return the control requests of a request with these fields."""
    [(_, lines)] = steps(user("hi"), **fields)
    return [line["request"] for line in lines if line["type"] == "control_request"]


def contents(*parts: Part | str) -> list[dict[str, Any]]:
    [(_, lines)] = steps(user(*parts))
    blocks: list[dict[str, Any]] = lines[-1]["message"]["content"]
    return blocks


def test_a_first_message_goes_out_in_one_go() -> None:
    assert steps(user("hi")) == [
        (
            0,
            [
                {"type": "control_request", "request_id": "initialize", "request": {"subtype": "initialize"}},
                {
                    "type": "control_request",
                    "request_id": "settings",
                    "request": {"subtype": "apply_flag_settings", "settings": {"model": MODEL}},
                },
                {
                    "type": "user",
                    "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                    "client_composed": True,
                },
            ],
        )
    ]


def test_system_prompt_model_effort_and_limit_are_settings() -> None:
    assert controls(system="Be brief.", effort="low", max_tokens=2000) == [
        {"subtype": "initialize", "systemPrompt": ["Be brief."]},
        {
            "subtype": "apply_flag_settings",
            "settings": {"model": MODEL, "effortLevel": "low", "env": {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "2000"}},
        },
    ]


@pytest.mark.parametrize(("max_tokens", "thinks"), [(1, False), (1024, False), (1025, True)])
def test_an_answer_that_must_be_short_is_given_without_thinking(max_tokens: int, thinks: bool) -> None:
    [_, flags] = controls(max_tokens=max_tokens)

    assert ("CLAUDE_CODE_DISABLE_THINKING" not in flags["settings"]["env"]) is thinks


def test_each_message_of_history_waits_until_the_users_one_before_it_is_accepted() -> None:
    said = steps(user("one"), assistant("two"), user("three"), assistant("four"), user("five"))

    told = [(acks, [(line["type"], line.get("shouldQuery")) for line in lines]) for acks, lines in said]
    settings = ("control_request", None)
    assert told == [
        (0, [settings, settings, ("user", False)]),
        (1, [("assistant", None), ("user", False)]),
        (2, [("assistant", None), ("user", None)]),
    ]


def test_history_may_begin_with_the_assistant() -> None:
    [(acks, lines)] = steps(assistant("one"), user("two"))

    assert (acks, [line["type"] for line in lines[2:]]) == (0, ["assistant", "user"])


def test_every_message_of_the_users_stays_text() -> None:
    lines = [line for _, lines in steps(user("/help"), assistant("@/etc/hosts"), user("@/etc/hosts")) for line in lines]

    assert [line["client_composed"] for line in lines if line["type"] == "user"] == [True, True]


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Text("a\nb\u2028c"), {"type": "text", "text": "a\nb\u2028c"}),
        (
            Image("image/png", "aGk="),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        ),
        (
            Image(url="https://images.example/x.png"),
            {"type": "image", "source": {"type": "url", "url": "https://images.example/x.png"}},
        ),
        (
            ToolUse("c1", "look", {"where": ["here"]}),
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"where": ["here"]}},
        ),
        (
            ToolResult("c1", (Text("seen"), Image("image/png", "aGk=")), is_error=True),
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [
                    {"type": "text", "text": "seen"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                ],
                "is_error": True,
            },
        ),
    ],
)
def test_each_part_has_its_block(part: Part, block: dict[str, Any]) -> None:
    assert contents(part) == [block]


def test_a_message_may_have_many_parts() -> None:
    assert [block["type"] for block in contents("a", Image("image/png", "aGk="), "b")] == ["text", "image", "text"]


def test_a_message_is_one_line_whatever_it_says() -> None:
    request = CompletionRequest(model=MODEL, messages=(user("a\r\nb\x85c\u2028d\x00"),))

    [step] = conversation(request)

    assert step.data.count(b"\n") == 3


def test_text_that_cannot_be_encoded_is_made_so() -> None:
    part = ToolResult("c1", (Text("a\ud83db"),))

    assert contents("\ud83d\ude00", part)[0]["text"] == "\N{GRINNING FACE}"
    assert contents(part)[0]["content"][0]["text"] == "a\N{REPLACEMENT CHARACTER}b"
    assert controls(system="\ud83d")[0]["systemPrompt"] == ["\N{REPLACEMENT CHARACTER}"]
