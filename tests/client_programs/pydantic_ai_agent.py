"""Run an agent of pydantic-ai with a tool."""

import json
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from weather import Weather


def main() -> None:
    question = json.loads(sys.argv[1])
    weather = Weather()
    provider = OpenAIProvider(base_url=question["url"], api_key="none")
    agent = Agent(OpenAIChatModel(question["model"], provider=provider), tools=[weather.get_weather])
    json.dump({"text": agent.run_sync(question["content"]).output, "asked": weather.asked}, sys.stdout)


main()
