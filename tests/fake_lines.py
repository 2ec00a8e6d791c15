"""Build the lines that `claude` 2.1.332 prints; `fake_claude` adds ``session_id`` and ``uuid`` and prints them."""

import os
from typing import Any, TypeAlias

VERSION = "2.1.332"
MODEL = "claude-opus-5-5"
SESSION = "00000000-0000-4000-8000-00000000face"
TIMESTAMP = "2026-11-30T12:00:00.000Z"

Json: TypeAlias = dict[str, Any]
# Input, output, cache read and cache write tokens, as `success(usage=...)` of fake_script counts them.
Tokens: TypeAlias = tuple[int, int, int, int]
NOTHING: Tokens = (0, 0, 0, 0)
ONE_ROUND: Tokens = (101, 44, 303, 202)
WHOLE_MESSAGE: Tokens = (11, 7, 0, 0)


def init(model: str) -> Json:
    cwd = os.getcwd()  # noqa: PTH109 - pathlib would slow every start
    return {
        "type": "system",
        "subtype": "init",
        "cwd": cwd,
        "tools": [],
        "mcp_servers": [],
        "model": model,
        "permissionMode": "default",
        "slash_commands": [],
        "apiKeySource": "none",
        "claude_code_version": VERSION,
        "output_style": "default",
        "agents": ["claude", "general-purpose"],
        "skills": [],
        "plugins": [{"name": "cc-plugin-privacy", "path": "builtin", "source": "cc-plugin-privacy@builtin"}],
        "capabilities": ["interrupt_receipt_v1", "msg_lifecycle_v1"],
        "analytics_disabled": True,
        "product_feedback_disabled": True,
        "served_by_anthropic": False,
        "sandbox_enabled": False,
        "memory_paths": {"auto": f"{cwd}/memory/"},
        "original_cwd": cwd,
        "additional_directories": [],
        "messaging_socket_path": "/tmp/cc-socks/PID.sock",
        "fast_mode_state": "off",
        "fast_mode_disabled_reason": "sdk_opt_in_required",
        "per_turn_effort_active": True,
        "ultrathink_available": False,
        "ultrathink_typed_raises": False,
        "view_mode": "default",
    }


def initialized() -> Json:
    """Return what `initialize` is answered with: the child's models, agents and account."""
    efforts = ["low", "medium", "high", "xhigh", "max"]
    able: Json = {"supportsEffort": True, "supportedEffortLevels": efforts, "supportsAdaptiveThinking": True}
    models: list[Json] = [
        {"value": "default", "resolvedModel": MODEL, "displayName": "Default", "supportsFastMode": True},
        {"value": "sonnet", "resolvedModel": "claude-sonnet-5-5", "displayName": "Sonnet"},
    ]
    return {
        "commands": [],
        "agents": [{"name": "claude", "description": "Anything.", "model": "inherit"}],
        "output_style": "default",
        "available_output_styles": ["default"],
        "user_output_styles_dir": "/nowhere",
        "models": [
            {"description": "", **able, "supportsAutoMode": True, "supportsThinkingOff": False, **m} for m in models
        ],
        "account": {"tokenSource": "none", "apiKeySource": "none", "apiProvider": "firstParty"},
        "pid": os.getpid(),
        "claude_code_version": VERSION,
        "current_permission_mode": "default",
        "hook_on_failure_supported": True,
        "hooks_when_unanswered_kept": 0,
        "other_hook_ask_outranks_host": True,
        "feedback_mode": {"kind": "disabled"},
        "analytics_disabled": True,
        "sandbox_enabled": False,
        "remote_control_auto_enable": False,
        "remote_control_auto_connect_default": False,
        "remote_control_available": False,
        "remote_control_auto_on_by_default": False,
        "ide_rc_auto_enable_gate": False,
        "fast_mode_state": "off",
        "fast_mode_disabled_reason": "sdk_opt_in_required",
        "session_state": "idle",
        "capabilities": ["ui_surface_v1"],
    }


def control_response(request_id: object, **fields: object) -> Json:
    return {"type": "control_response", "response": {"subtype": "success", "request_id": request_id, **fields}}


def _cache_creation(tokens: int) -> Json:
    return {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": tokens}


def started_usage(tokens: Tokens = ONE_ROUND) -> Json:
    """Return usage as the API gives it at the start of a message: one output token, whatever comes."""
    return {
        "input_tokens": tokens[0],
        "cache_creation_input_tokens": tokens[3],
        "cache_read_input_tokens": tokens[2],
        "cache_creation": _cache_creation(tokens[3]),
        "output_tokens": 1,
        "service_tier": "standard",
    }


def full_usage(tokens: Tokens) -> Json:
    """Return usage as the CLI itself gives it: in results and in messages that did not come as a stream."""
    return {
        "output_tokens_details": {"thinking_tokens": 0},
        "input_tokens": tokens[0],
        "cache_creation_input_tokens": tokens[3],
        "cache_read_input_tokens": tokens[2],
        "output_tokens": tokens[1],
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": _cache_creation(tokens[3]),
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": None,
    }


def message_start(message_id: str, model: str) -> Json:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": []}
    stop = {"stop_reason": None, "stop_sequence": None}
    return {"type": "message_start", "message": {**message, **stop, "usage": started_usage()}}


def message_delta(stop_reason: str | None, output_tokens: int) -> Json:
    stop = {"stop_reason": stop_reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": stop, "usage": {"output_tokens": output_tokens}}


def cut_message_delta() -> Json:
    """Return the delta that the CLI itself adds to a message whose stream was cut for good."""
    usage = full_usage((ONE_ROUND[0], 1, ONE_ROUND[2], ONE_ROUND[3]))
    for key in ("service_tier", "cache_creation", "inference_geo", "speed"):
        del usage[key]
    delta = {"container": None, "stop_details": None, "stop_reason": None, "stop_sequence": None}
    return {"type": "message_delta", "context_management": None, "delta": delta, "usage": usage}


def assistant(message_id: str, model: str, block: Json, stop_reason: str | None = None) -> Json:
    """Return the line that repeats a finished block; with a stop reason: a whole message that was not streamed."""
    return {
        "type": "assistant",
        "message": {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": full_usage(WHOLE_MESSAGE) if stop_reason else started_usage(),
            "context_management": None,
        },
        "parent_tool_use_id": None,
        "timestamp": TIMESTAMP,
        "request_id": "req_fake_0001",
    }


def synthetic(text: str, error: str, status: int | None, stop_reason: str, extra: Json) -> Json:
    """Return the assistant line in which the CLI reports an error of the API or of its own."""
    message = {
        **assistant("00000000-0000-4000-8000-00000000bad0", "<synthetic>", {"type": "text", "text": text})["message"],
        "diagnostics": None,
        "container": None,
        "stop_details": None,
        "stop_reason": stop_reason,
        "stop_sequence": "",
        "usage": {**full_usage(NOTHING), "output_tokens_details": None, "service_tier": None, "speed": None},
    }
    reached_api = {} if status is None else {"request_id": "req_fake_0001", "api_error_status": status}
    flags = {"error": error, "is_api_error_message": True, **reached_api, **extra}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "timestamp": TIMESTAMP, **flags}


def user(content: list[Json], **extra: object) -> Json:
    message = {"role": "user", "content": content}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "timestamp": TIMESTAMP, **extra}


def _model_usage(model: str, tokens: Tokens) -> Json:
    return {
        model: {
            "inputTokens": tokens[0],
            "outputTokens": tokens[1],
            "cacheReadInputTokens": tokens[2],
            "cacheCreationInputTokens": tokens[3],
            "webSearchRequests": 0,
            "costUSD": 0.0023,
            "contextWindow": 1_000_000,
            "maxOutputTokens": 128_000,
            "thinkingTokens": 0,
            "cacheCreationEphemeral5mInputTokens": tokens[3],
            "cacheCreationEphemeral1hInputTokens": 0,
            "canonicalModel": model,
            "provider": "firstParty",
            "costBasis": "list",
        }
    }


def result(model: str | None, tokens: Tokens, **fields: object) -> Json:
    """Return a result line without its outcome; ``model`` of None says that no model was asked."""
    by_model = {} if model is None else _model_usage(model, tokens)
    zeros = {"parent": 0, "user": 0, "system": 0}
    return {
        "duration_api_ms": 230,
        "total_cost_usd": 0.0023,
        "usage": full_usage(tokens),
        "modelUsage": by_model,
        "permission_denials": [],
        "fast_mode_state": "off",
        "fast_mode_disabled_reason": "sdk_opt_in_required",
        "subagent_stats": {
            "spawned": 0,
            "requested": {"background": 0, "foreground": 0, "unset": 0},
            "started_in_background": 0,
            "max_depth": 0,
            "spawned_by_subagents": 0,
            "completed": 0,
            "failed": 0,
            "killed": zeros,
            "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
            "by_type": {},
        },
        "safety_stops": 0,
        "type": "result",
        "duration_ms": 300,
        "queued_turn_count": 0,
        "result_index": 0,
        "model_usage_since_last_result": by_model,
        **fields,
    }
