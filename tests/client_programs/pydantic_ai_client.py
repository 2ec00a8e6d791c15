"""Ask through an agent of pydantic-ai."""

from asking import Ask, Seen, answer_all
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def answer(ask: Ask, seen: Seen) -> None:
    client = AsyncOpenAI(base_url=ask.url, api_key=ask.key, default_headers=ask.headers)
    agent = Agent(OpenAIChatModel(ask.model, provider=OpenAIProvider(openai_client=client)))
    if ask.stream:
        run = agent.run_stream_sync(ask.content)
        for piece in run.stream_text(delta=True, debounce_by=None):
            seen.pieces.append(piece)
        seen.finish = run.response.finish_reason
    else:
        run = agent.run_sync(ask.content)
        seen.pieces.append(run.output)
        seen.finish = run.response.finish_reason
    seen.tokens = (run.usage.input_tokens, run.usage.output_tokens)


answer_all(answer, ModelAPIError)
