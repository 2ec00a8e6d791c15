"""The tool that the Python agents of this folder have."""

from typing import Any

__all__ = ["TOOL", "Weather"]

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Weather:
    """Tells the weather, and remembers for which cities."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_weather(self, city: str) -> str:
        """Tell the weather."""
        self.asked.append(city)
        return {"Rome": "21 C", "Bonn": "7 C"}[city]
