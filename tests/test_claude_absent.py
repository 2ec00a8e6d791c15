"""Without the CLI its models are known, and whoever asks for one is told how to install it."""

import pytest

from ocp_trio.claude import HOW_TO_INSTALL, AbsentClaude
from ocp_trio.completion import CompletionRequest, Message, Text
from ocp_trio.errors import BackendUnavailableError


def test_none_of_its_models_is_offered_but_their_names_are_known() -> None:
    absent = AbsentClaude()

    assert absent.models == ()
    assert (absent.resolve("opus"), absent.resolve("gpt-4o")) == ("claude-opus-5-5", None)


async def test_a_request_is_refused_with_the_way_to_install_it() -> None:
    request = CompletionRequest(model="claude-opus-5-5", messages=(Message("user", (Text("hi"),)),))

    with pytest.raises(BackendUnavailableError) as refusal:
        async with AbsentClaude().stream(request):
            pass

    assert str(refusal.value) == f"claude-opus-5-5 is not served here: {HOW_TO_INSTALL}"
