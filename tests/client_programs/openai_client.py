"""Ask through the official client for Python."""

import openai
from asking import Ask, Seen, answer_all


def answer(ask: Ask, seen: Seen) -> None:
    with openai.OpenAI(base_url=ask.url, api_key=ask.key, default_headers=ask.headers) as client:
        if ask.stream:
            stream = client.chat.completions.create(
                model=ask.model, messages=ask.messages, stream=True, stream_options={"include_usage": True}
            )
            for chunk in stream:
                for choice in chunk.choices:
                    seen.pieces += [choice.delta.content] if choice.delta.content else []
                    seen.finish = choice.finish_reason or seen.finish
                if chunk.usage:
                    seen.tokens = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
        else:
            whole = client.chat.completions.create(model=ask.model, messages=ask.messages)
            seen.pieces.append(whole.choices[0].message.content or "")
            seen.finish = whole.choices[0].finish_reason
            assert whole.usage
            seen.tokens = (whole.usage.prompt_tokens, whole.usage.completion_tokens)


answer_all(answer, openai.APIError)
