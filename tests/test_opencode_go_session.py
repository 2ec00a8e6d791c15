"""A conversation goes by one name, which tells nothing of it."""

import re

from msgspec.structs import replace

from ocp_trio.completion import CompletionRequest, Message, Text
from ocp_trio.opencode_go.session import session_id

KEY = "a-key"
FIRST = Message("user", (Text("What is Trio?"),))
REQUEST = CompletionRequest(model="kimi-k3", messages=(FIRST,), system="Be brief.", caller="alice")
MORE = (FIRST, Message("assistant", (Text("A library."),)), Message("user", (Text("For what?"),)))


def test_each_turn_of_a_conversation_has_the_same_name() -> None:
    assert session_id(KEY, replace(REQUEST, messages=MORE)) == session_id(KEY, REQUEST)


def test_another_beginning_caller_or_key_has_another() -> None:
    others = [
        replace(REQUEST, messages=(Message("user", (Text("What is asyncio?"),)),)),
        replace(REQUEST, system="Be long."),
        replace(REQUEST, caller="bob"),
    ]

    names = {session_id(KEY, request) for request in (REQUEST, *others)} | {session_id("another", REQUEST)}

    assert len(names) == 5


def test_the_callers_own_name_of_it_decides_where_there_is_one() -> None:
    named = replace(REQUEST, session="mine")

    assert session_id(KEY, named) == session_id(KEY, replace(named, messages=MORE[2:], system=""))
    assert session_id(KEY, named) != session_id(KEY, replace(named, caller="bob"))
    assert session_id(KEY, named) != session_id(KEY, replace(named, session="other"))


def test_it_can_stand_in_a_header_whatever_it_is_made_of() -> None:
    assert re.fullmatch(r"ses_[0-9a-f]{32}", session_id(KEY, replace(REQUEST, session="a\r\nb: c é")))
