"""What the Python programs of this folder share: questions as arguments, answers on standard output, as JSON."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Ask", "Seen", "answer_all"]


@dataclass(frozen=True)
class Ask:
    """A question.

    Attributes:
        url: The server's, with ``/v1``.
        headers: More of them.
    """

    url: str
    key: str
    model: str
    content: str
    stream: bool
    headers: dict[str, str]

    @property
    def messages(self) -> Any:
        return [{"role": "user", "content": self.content}]


@dataclass
class Seen:
    """What a library made of the answer.

    Attributes:
        pieces: The text, as it came.
        finish: The finish reason.
        tokens: Of the prompt and of the answer.
        error: The exception's type and, if it tells them, the status and the code.
    """

    pieces: list[str] = field(default_factory=list)
    finish: str | None = None
    tokens: tuple[int, int] | None = None
    error: tuple[Any, ...] | None = None


def answer_all(answer: Callable[[Ask, Seen], None], errors: type[Exception]) -> None:
    """Ask every question of the command line, and print what was seen of its answer, ``errors`` included."""
    answers = []
    for question in json.loads(sys.argv[1]):
        seen = Seen()
        try:
            answer(Ask(**question), seen)
        except errors as error:
            seen.error = (type(error).__name__, getattr(error, "status_code", None), getattr(error, "code", None))
        answers.append(asdict(seen))
    json.dump(answers, sys.stdout)
