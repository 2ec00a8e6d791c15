"""Run the tool loop of the official client for Python, streamed, until the model calls no more."""

import json
import sys
from typing import Any

import openai
from weather import TOOL, Weather


def main() -> None:
    question = json.loads(sys.argv[1])
    weather = Weather()
    messages: list[Any] = [{"role": "user", "content": question["content"]}]
    with openai.OpenAI(base_url=question["url"], api_key="none") as client:
        while True:
            with client.chat.completions.stream(model=question["model"], messages=messages, tools=[TOOL]) as stream:
                message = stream.get_final_completion().choices[0].message
            if not message.tool_calls:
                break
            messages.append(message)
            for call in message.tool_calls:
                said = weather.get_weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    json.dump({"asked": weather.asked, "text": message.content}, sys.stdout)


main()
