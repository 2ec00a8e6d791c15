"""Ask a running server, and turn whatever comes instead of an answer into one clear failure."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
import msgspec

from ocp_trio.cli.failures import Failure, NotAuthorised, Unreachable
from ocp_trio.cli.screen import progress
from ocp_trio.cli.target import Target

__all__ = ["Answer", "Api", "open_api"]

TIMEOUT = httpx.Timeout(15.0, connect=5.0)
"""Seconds of silence after which a server is given up; its own calls of the store take 2 at most."""

T = TypeVar("T")


class Answer:
    """The body of a response that is JSON.

    Attributes:
        status: Its HTTP status.
        value: The body, decoded.
    """

    def __init__(self, status: int, value: Any, url: str) -> None:  # noqa: ANN401 (whatever JSON can say)
        self.status = status
        self.value = value
        self._url = url

    def read_as(self, kind: type[T]) -> T:
        """Return the body as a type.

        Raises:
            Unreachable: it is something else, so this is another server.
        """
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            raise _foreign(self._url, str(error)) from error


class Api:
    """A server's endpoints; made by `open_api`."""

    def __init__(self, client: httpx.Client, target: Target) -> None:
        self._client = client
        self._target = target

    def get(self, path: str, **parameters: str | int | None) -> Answer:
        """Get a path; parameters that are None are left out."""
        known = {name: value for name, value in parameters.items() if value is not None}
        return self.ask("GET", path, parameters=known)

    def ask(
        self, method: str, path: str, body: object = None, *, parameters: dict[str, str | int] | None = None
    ) -> Answer:
        """Send a request and return the answer.

        Raises:
            Unreachable: there is no such server.
            NotAuthorised: the key is missing, wrong, or may not do this.
            Failure: the server refuses.
        """
        url = self._target.address.url
        # Half of a surrogate pair, as an argument may hold, has no UTF-8: everything is escaped.
        content = None if body is None else json.dumps(body).encode()
        try:
            with progress(f"asking {url}"):
                response = self._client.request(method, url + path, content=content, params=parameters)
        except httpx.TimeoutException as error:
            raise Unreachable(f"{url} does not answer: is that the right address, and is the server well?") from error
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise Unreachable(
                f"{_why(error, url)}; start one there with `ocp-trio serve`, or name another address"
            ) from error
        return self._answer(response)

    def _answer(self, response: httpx.Response) -> Answer:
        url = self._target.address.url
        try:
            value = msgspec.json.decode(response.content)
        except msgspec.DecodeError as error:
            kind = response.headers.get("content-type", "no content type").partition(";")[0]
            raise _foreign(url, f"status {response.status_code}, {kind}") from error
        if response.status_code < 400:
            return Answer(response.status_code, value, url)
        if isinstance(value, dict) and "results" in value:
            # A change of settings of which none could be made: its reasons are the answer.
            return Answer(response.status_code, value, url)
        raise self._refusal(response.status_code, value)

    def _refusal(self, status: int, value: object) -> Failure:
        error = value.get("error") if isinstance(value, dict) else None
        message = error.get("message") if isinstance(error, dict) else None
        if not isinstance(message, str):
            return _foreign(self._target.address.url, f"status {status}")
        if status not in {401, 403}:
            return Failure(message, http_status=status)
        if self._target.key is None:
            return NotAuthorised(
                f"{message}; set OCP_ADMIN_KEY or OPENAI_API_KEY, or use --key-file", http_status=status
            )
        return NotAuthorised(f"{message}; the key that was sent is not the right one for this", http_status=status)


def _foreign(url: str, detail: str) -> Unreachable:
    return Unreachable(f"{url} answers, but not as this server does ({detail}): is that the right address?")


def _why(error: Exception, url: str) -> str:
    reason = str(error)
    if "refused" in reason:
        return f"no server listens at {url}"
    return f"{url} cannot be reached ({reason or type(error).__name__})"


@contextmanager
def open_api(target: Target) -> Iterator[Api]:
    """Open the connection to a server for the length of a block."""
    headers = {"authorization": f"Bearer {target.key}"} if target.key else {}
    # What goes to this very machine does not go to a proxy first, and no key does.
    trust_env = not target.address.is_local
    with httpx.Client(headers=headers, timeout=TIMEOUT, trust_env=trust_env) as client:
        yield Api(client, target)
