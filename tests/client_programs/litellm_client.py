"""Ask through litellm, as an OpenAI-compatible server."""

import litellm
import openai
from asking import Ask, Seen, answer_all


def answer(ask: Ask, seen: Seen) -> None:
    answered = litellm.completion(
        model=f"openai/{ask.model}",
        api_base=ask.url,
        api_key=ask.key,
        messages=ask.messages,
        extra_headers=ask.headers,
        stream=ask.stream,
        stream_options={"include_usage": True} if ask.stream else None,
    )
    if ask.stream:
        for chunk in answered:
            for choice in chunk.choices:
                seen.pieces += [choice.delta.content] if choice.delta.content else []
                seen.finish = choice.finish_reason or seen.finish
            if usage := getattr(chunk, "usage", None):
                seen.tokens = (usage.prompt_tokens, usage.completion_tokens)
    else:
        seen.pieces.append(answered.choices[0].message.content)
        seen.finish = answered.choices[0].finish_reason
        seen.tokens = (answered.usage.prompt_tokens, answered.usage.completion_tokens)


# It would print advice for each error.
litellm.suppress_debug_info = True
# Its exceptions are OpenAI's.
answer_all(answer, openai.APIError)
