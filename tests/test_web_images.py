"""Images reach the backend, within what the settings allow."""

import base64
import json
from typing import Any

import pytest
from web_app import open_web_app

from ocp_trio.completion import Completed, Image
from ocp_trio.testing import ScriptedBackend

DATA = base64.b64encode(bytes(100)).decode()
PIXELS = f"data:image/png;base64,{DATA}"
ADDRESS = "https://host.example/cat.png"


async def ask(*urls: str, **settings: Any) -> tuple[int, dict[str, Any], ScriptedBackend]:
    """Ask with images; return status, body and the backend."""
    backend = ScriptedBackend([(Completed("stop"),)])
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    async with open_web_app(backend, **settings) as app:
        status, body = await app.ask(messages=[{"role": "user", "content": parts}])
    return status, json.loads(body), backend


async def test_a_data_uri_reaches_the_backend() -> None:
    status, _, backend = await ask(PIXELS)

    assert status == 200
    assert backend.requests[0].messages[0].parts == (Image(media_type="image/png", data=DATA),)


@pytest.mark.parametrize(
    ("urls", "settings"),
    [
        ([PIXELS] * 21, {}),
        ([PIXELS] * 3, {"max_images": 2}),
        ([PIXELS], {"max_images": 0}),
        ([PIXELS], {"max_image_bytes": 99}),
        ([PIXELS] * 3, {"max_image_total_bytes": 299}),
    ],
)
async def test_too_many_or_too_large_is_a_413(urls: list[str], settings: dict[str, Any]) -> None:
    status, body, backend = await ask(*urls, **settings)

    assert (status, body["error"]["code"]) == (413, "request_too_large")
    assert body["error"]["param"] == f"messages[0].content[{len(urls) - 1}].image_url"
    assert backend.requests == []


async def test_what_the_limits_allow_is_taken() -> None:
    limits = {"max_images": 3, "max_image_bytes": 100, "max_image_total_bytes": 300}

    assert (await ask(*[PIXELS] * 3, **limits))[0] == 200


async def test_an_address_is_passed_on_only_if_a_setting_says_so() -> None:
    status, body, _ = await ask(ADDRESS)
    assert (status, body["error"]["code"]) == (400, "unsupported_value")

    status, _, backend = await ask(ADDRESS, image_urls=True)
    assert status == 200
    assert backend.requests[0].messages[0].parts == (Image(url=ADDRESS),)
