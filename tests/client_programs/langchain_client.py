"""Ask through langchain-openai."""

import openai
from asking import Ask, Seen, answer_all
from langchain_openai import ChatOpenAI


def answer(ask: Ask, seen: Seen) -> None:
    model = ChatOpenAI(
        model=ask.model, base_url=ask.url, api_key=ask.key, default_headers=ask.headers, stream_usage=True
    )
    for message in model.stream(ask.content) if ask.stream else [model.invoke(ask.content)]:
        seen.pieces += [message.text] if message.text else []
        seen.finish = message.response_metadata.get("finish_reason", seen.finish)
        if usage := message.usage_metadata:
            seen.tokens = (usage["input_tokens"], usage["output_tokens"])


# It lets the exceptions of the official client through.
answer_all(answer, openai.APIError)
