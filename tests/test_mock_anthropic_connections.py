"""The mock of the Messages API keeps, holds and cuts connections as its script says."""

from collections.abc import AsyncIterator

import httpx
import pytest
import trio
from mock_anthropic import MockAnthropic, api_error, open_mock_anthropic
from sse_script import Answer, Cut, Tell, Text, Wait

QUESTION = {"model": "m", "stream": True, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}


@pytest.fixture
async def mock() -> AsyncIterator[MockAnthropic]:
    with trio.fail_after(10):
        async with open_mock_anthropic() as mock:
            yield mock


@pytest.fixture
async def client(mock: MockAnthropic) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=mock.url, trust_env=False, timeout=5) as client:
        yield client


async def ask(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/v1/messages?beta=true", json=QUESTION)


async def test_a_truncated_stream_ends_as_http_wants_it(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Text("par"), Cut("truncated")))

    body = (await ask(client)).text

    assert "par" in body
    assert "message_stop" not in body


@pytest.mark.parametrize(("how", "error"), [("fin", httpx.RemoteProtocolError), ("rst", httpx.ReadError)])
async def test_a_cut_connection_breaks_the_body(
    mock: MockAnthropic, client: httpx.AsyncClient, how: str, error: type[Exception]
) -> None:
    seen = trio.Event()
    mock.script(Answer(Text("par"), Wait(seen), Cut("fin" if how == "fin" else "rst")))

    async def read() -> None:
        async with client.stream("POST", "/v1/messages", json=QUESTION) as response:
            async for text in response.aiter_text():
                if "par" in text:
                    seen.set()

    with pytest.raises(error):
        await read()

    assert seen.is_set()


async def test_a_connection_may_be_cut_before_the_headers(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(before_headers=(Cut("fin"),)))

    with pytest.raises(httpx.RemoteProtocolError):
        await ask(client)


async def test_headers_may_wait(mock: MockAnthropic, client: httpx.AsyncClient, nursery: trio.Nursery) -> None:
    asked, go, answered = trio.Event(), trio.Event(), trio.Event()
    mock.script(Answer(Text("late"), before_headers=(Tell(asked), Wait(go))))

    async def wait_for_headers() -> None:
        async with client.stream("POST", "/v1/messages", json=QUESTION):
            answered.set()

    nursery.start_soon(wait_for_headers)
    await asked.wait()
    assert not answered.is_set()
    go.set()

    await answered.wait()


async def test_a_stream_stands_still_until_the_test_goes_on(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    reached, go = trio.Event(), trio.Event()
    mock.script(Answer(Text("one"), Tell(reached), Wait(go), Text("two")))

    received = ""
    async with client.stream("POST", "/v1/messages", json=QUESTION) as response:
        async for text in response.aiter_text():
            received += text
            if "one" in received and not go.is_set():
                await reached.wait()
                assert "two" not in received
                go.set()

    assert "two" in received


async def test_requests_are_remembered(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    before = trio.current_time()

    await ask(client)

    [request] = mock.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/messages?beta=true", QUESTION)
    assert request.headers["content-type"] == "application/json"
    assert (request.roles, request.last_user_text) == (["user"], "hi")
    assert before <= request.received <= trio.current_time()


async def test_a_request_can_be_waited_for(
    mock: MockAnthropic, client: httpx.AsyncClient, nursery: trio.Nursery
) -> None:
    mock.script(Answer(Wait(trio.Event())))
    nursery.start_soon(ask, client)

    request = await mock.wait_request(0)

    assert request.body == QUESTION
    nursery.cancel_scope.cancel()


async def test_one_connection_serves_many_requests(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(api_error(500, "no"), Answer(Text("yes")))

    await ask(client)
    await ask(client)
    await client.head("/")
    await ask(client)

    assert [request.method for request in mock.requests] == ["POST", "POST", "HEAD", "POST"]
    assert len({id(request.closed) for request in mock.requests}) == 1
    assert not mock.requests[0].closed.is_set()


async def test_a_peer_that_leaves_is_noticed_in_mid_answer(mock: MockAnthropic) -> None:
    mock.script(Answer(Text("one"), Wait(trio.Event())))

    async with (
        httpx.AsyncClient(trust_env=False) as client,
        client.stream("POST", f"{mock.url}/v1/messages", json=QUESTION),
    ):
        assert not mock.requests[0].closed.is_set()

    await mock.requests[0].closed.wait()


async def test_leaving_the_block_ends_what_is_being_answered(nursery: trio.Nursery) -> None:
    broken = trio.Event()

    async def ask_until_it_breaks(url: str) -> None:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await ask(client)
        broken.set()

    with trio.fail_after(5):
        async with open_mock_anthropic() as mock:
            mock.script(Answer(Text("one"), Wait(trio.Event())))
            nursery.start_soon(ask_until_it_breaks, mock.url)
            await mock.wait_request(0)

        await broken.wait()


async def test_what_does_not_ask_the_model_needs_no_script(mock: MockAnthropic, client: httpx.AsyncClient) -> None:
    mock.script(Answer(Text("one")), Answer(Text("two")))

    assert (await client.head("/")).status_code == 200
    assert (await client.post("/v1/messages/count_tokens", json=QUESTION)).json() == {"input_tokens": 26}
    assert (await client.get("/v1/models")).json()["data"] == []
    assert (await client.get("/elsewhere")).status_code == 404
    assert "one" in (await ask(client)).text
