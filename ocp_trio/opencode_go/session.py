"""Name a conversation, so that the provider sends all its requests the same way and finds its cached prompt."""

import hashlib
import hmac

import msgspec

from ocp_trio.completion import CompletionRequest

__all__ = ["session_id"]


def session_id(key: str, request: CompletionRequest) -> str:
    """Return the same name for each request of one conversation, whatever follows its first turn.

    It tells nothing of the key, of the caller, or of what was said; different callers never share one.

    Args:
        key: The provider's key.
        request: What is asked. The caller's own name for the conversation counts, or else how it begins.
    """
    begin = (request.session,) if request.session else (request.system, request.messages[:1])
    seed = msgspec.json.encode((request.caller, begin))
    return "ses_" + hmac.new(key.encode(), seed, hashlib.sha256).hexdigest()[:32]
