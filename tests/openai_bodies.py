"""Bodies of chat completion requests, to be read by tests."""

import json

from ocp_trio.openai.requests import ChatRequest, parse_chat_request

MESSAGES = [{"role": "user", "content": "hi"}]
FUNCTION = {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
IGNORED = {
    "temperature": 0.2,
    "top_p": 1,
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": -0.1,
    "logit_bias": {"50256": -100},
    "logprobs": False,
    "top_logprobs": 0,
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "store": False,
    "metadata": {"a": "b"},
    "service_tier": "auto",
    "verbosity": "low",
    "modalities": ["text"],
    "prediction": {"type": "content", "content": "x"},
    "audio": {"voice": "alloy"},
    "web_search_options": {},
    "tools": [TOOL],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "functions": [FUNCTION],
    "function_call": "none",
    "unknown_x": 1,
}
HONOURED = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "n": 1,
    "stop": ["a", "b", "c", "d"],
    "response_format": {"type": "json_object"},
    "reasoning_effort": "high",
    "max_tokens": 100,
    "max_completion_tokens": 200,
    "session_id": "s-1",
    "conversation_id": "c-1",
}


def body(**fields: object) -> bytes:
    return json.dumps({"model": "m", "messages": MESSAGES, **fields}).encode()


def parse(**fields: object) -> ChatRequest:
    return parse_chat_request(body(**fields))
