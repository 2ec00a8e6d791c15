"""A body is refused exactly where the published schema says that it is wrong, whatever stands in whatever field."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import trio
from fake_program import install, records
from hypercorn_worker import Peer, Reply
from malformed_bodies import LEFT_OUT, SAMPLES, VALUES, changed, fields, param
from server_process import LIMIT, Server, shared_server

UNKNOWN = "no-such-model"
"""So that what is not malformed is a 404, and starts nothing."""
BEYOND_SCHEMA = re.compile(
    r"n|tool_choice|tools\[0\]\.function\.parameters|functions\[0\]\.parameters"
    r"|messages|messages\[\d\]|messages\[\d\]\.(name|tool_call_id)|messages\[2\]\.content\[1\]\.image_url.*"
)
"""What is looked at more closely than a schema can: what refers to what, what is a schema, what is an image."""
TAGS = re.compile(r".*\.type")
"""Tags that may be left out where there is no choice, though the schema wants them."""


class Client:
    """One connection, for one request after the other; another one when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._peer: Peer | None = None

    async def post(self, body: bytes) -> Reply:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        peer = self._peer or await self._connect()
        await peer.send(head % len(body) + body)
        reply = await peer.reply()
        if reply.headers.get("connection") == "close":
            await self.aclose()
        return reply

    async def _connect(self) -> Peer:
        stream = await trio.open_tcp_stream("127.0.0.1", self._port)
        self._peer = Peer(stream.socket, stream)
        return self._peer

    async def aclose(self) -> None:
        if self._peer:
            await self._peer.stream.aclose()
        self._peer = None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fake")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with shared_server(install(folder)) as server:
        yield server


@asynccontextmanager
async def open_posts(server: Server, folder: Path) -> AsyncIterator[Client]:
    """Connect for the length of a block; after it nothing has been started, and the server still serves."""
    with trio.fail_after(LIMIT):
        async with aclosing(Client(server.port)) as client:
            yield client
        assert records(folder) == []
        assert (await server.stats())["totalRequests"] == 0


async def body_schema(server: Server) -> dict[str, Any]:
    document = await server.get("/openapi.json")
    return {"$ref": "#/components/schemas/ChatBody", "components": document["components"]}


def is_right(reply: Reply, place: str, *, valid: bool) -> bool:
    """Whether the answer is the one that a body deserves which was changed at a place."""
    error = reply.error
    if (reply.status, error["code"]) == (404, "model_not_found"):
        return valid or TAGS.fullmatch(place) is not None
    if reply.status != 400 or set(error) != {"message", "type", "param", "code"}:
        return False
    # A key of an object that may have any is not named.
    named = (error["param"] or "").removesuffix("[...]")
    if valid:
        return error["code"] == "unsupported_value" and BEYOND_SCHEMA.fullmatch(named) is not None
    return named.startswith(place) or place.startswith(named)


@pytest.mark.parametrize("name", SAMPLES)
async def test_any_value_in_any_field_is_judged_as_the_schema_says(server: Server, folder: Path, name: str) -> None:
    validator = jsonschema_rs.validator_for(await body_schema(server))
    sample = {"model": UNKNOWN, **SAMPLES[name]}
    wrong = []
    async with open_posts(server, folder) as client:
        assert (await client.post(json.dumps(sample).encode())).status == 404
        for path in fields(sample):
            for value in [*VALUES, LEFT_OUT] if path else VALUES:
                body = changed(sample, path, value)
                reply = await client.post(json.dumps(body).encode())
                if not is_right(reply, param(path), valid=validator.is_valid(body)):
                    wrong.append((param(path), value, reply.status, reply.body))

    assert wrong == []


async def test_the_samples_have_every_field(server: Server) -> None:
    schemas = (await server.get("/openapi.json"))["components"]["schemas"]
    asked, names = ["ChatBody"], set()
    while asked:
        name = asked.pop()
        names.add(name)
        found = re.findall(r"#/components/schemas/(\w+)", json.dumps(schemas[name]))
        asked += [each for each in set(found) if each not in names]
    known = {field for name in names for field in schemas[name].get("properties", {})}

    assert known - {key for sample in SAMPLES.values() for path in fields(sample) for key in path} == {"model"}


NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x1", "-", "1e", "1_0", "1,0"]
EXTREMES = ["1e400", "-1e400", "1e-400", "0.1e99999999", "1" + "0" * 5000, "-1" + "0" * 5000, "0." + "0" * 5000 + "1"]
NUMBERS = [
    "n",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "top_logprobs",
]


@pytest.mark.parametrize("number", [*NO_NUMBERS, *EXTREMES], ids=lambda number: number[:12])
async def test_no_number_is_too_odd_to_be_answered(server: Server, folder: Path, number: str) -> None:
    async with open_posts(server, folder) as client:
        for field in NUMBERS:
            text = json.dumps({"model": UNKNOWN, "messages": [{"role": "user", "content": "u"}], field: "NUMBER"})
            reply = await client.post(text.replace('"NUMBER"', number).encode())

            assert reply.status == 400 or (reply.status == 404 and number in EXTREMES), field
            assert reply.error["code"] == "invalid_json" or number in EXTREMES


GOOD = json.dumps({"model": UNKNOWN, "messages": [{"role": "user", "content": "hi"}]})
REFUSED = {
    "empty": b"",
    "white space": b" \r\n\t",
    "NUL": b"\0",
    "NUL behind it": GOOD.encode() + b"\0",
    "NUL in a text": GOOD.replace("hi", "h\0i").encode(),
    "line feed in a text": GOOD.replace("hi", "h\ni").encode(),
    "two of them": (GOOD + GOOD).encode(),
    "something behind it": (GOOD + "x").encode(),
    "comment": ("/* x */" + GOOD).encode(),
    "comma at the end": GOOD.replace("}]}", "}],}").encode(),
    "single quotes": GOOD.replace('"', "'").encode(),
    "unknown escape": GOOD.replace("hi", r"\x41").encode(),
    "escape cut short": GOOD.replace("hi", r"\u00").encode(),
    "cut": GOOD[:-1].encode(),
    "UTF-16": GOOD.encode("utf-16"),
    "UTF-16 without a mark": GOOD.encode("utf-16-le"),
    "UTF-32": GOOD.encode("utf-32"),
    "mark of UTF-8 twice": "\ufeff\ufeff".encode() + GOOD.encode(),
    "not UTF-8": GOOD.encode().replace(b"hi", b"\xff"),
    "surrogate in UTF-8": GOOD.encode().replace(b"hi", b"\xed\xa0\x80"),
    "overlong UTF-8": GOOD.encode().replace(b"hi", b"\xc0\x80"),
    "not UTF-8 in an unknown field": GOOD.encode().replace(b"{", b'{"x":"\xff",', 1),
    "form": b"model=x&messages=y",
    "XML": b"<?xml version='1.0'?><a/>",
    "arrays": b"[" * 100_000,
    "arrays, closed": b"[" * 100_000 + b"]" * 100_000,
    "objects": b'{"a":' * 100_000,
    "arrays in the content": GOOD.replace('"hi"', "[" * 100_000 + "]" * 100_000).encode(),
    "arrays in an unknown field": GOOD.replace("{", '{"x":' + "[" * 100_000 + "]" * 100_000 + ",", 1).encode(),
    "objects in metadata": GOOD.replace("{", '{"metadata":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + ",", 1).encode(),
    "objects in a tool": GOOD.replace(
        "{", '{"functions":[{"name":"f","parameters":' + '{"a":' * 500 + "1" + "}" * 500 + "}],", 1
    ).encode(),
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
async def test_what_is_no_json_of_ours_is_refused(server: Server, folder: Path, body: bytes) -> None:
    async with open_posts(server, folder) as client:
        reply = await client.post(body)

    assert reply.status == 400
    assert set(reply.error) == {"message", "type", "param", "code"}
    assert reply.error["code"] in {"invalid_json", "invalid_type", "unsupported_value"}


TAKEN = {
    "mark of UTF-8": b"\xef\xbb\xbf" + GOOD.encode(),
    "white space round it": b"\n\t " + GOOD.encode() + b"\r\n",
    "a key twice": GOOD.replace("{", '{"model":"x",', 1).encode(),
    "lone surrogate": GOOD.replace("hi", r"\ud83d").encode(),
    "surrogates in the wrong order": GOOD.replace("hi", r"\ude00\ud83d").encode(),
    "lone surrogate in a key": GOOD.replace("{", r'{"\ud83d":1,', 1).encode(),
    "NUL, escaped": GOOD.replace("hi", r"\u0000").encode(),
    "unassigned characters": GOOD.replace("hi", "\U0010ffff\ufffe\u202e").encode(),
    "100,000 unknown keys": GOOD.replace("{", "{" + "".join(f'"k{n}":0,' for n in range(100_000)), 1).encode(),
    "a key of 1 MB": GOOD.replace("{", '{"' + "k" * 10**6 + '":0,', 1).encode(),
    "10,000 messages": GOOD.replace("[", "[" + '{"role":"user","content":"a"},' * 10_000, 1).encode(),
}


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
async def test_what_is_only_unusual_is_read(server: Server, folder: Path, body: bytes) -> None:
    async with open_posts(server, folder) as client:
        reply = await client.post(body)

    assert (reply.status, reply.error["code"]) == (404, "model_not_found")
