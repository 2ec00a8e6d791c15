"""Images come as data URIs, of known types, within limits."""

import base64

import pytest

from ocp_trio.completion import Image
from ocp_trio.errors import InvalidRequestError, RequestTooLargeError
from ocp_trio.openai.images import DEFAULT_IMAGE_LIMITS, ImageLimits, parse_image

PARAM = "messages[0].content[1].image_url"


def parse(url: str, limits: ImageLimits = DEFAULT_IMAGE_LIMITS) -> Image:
    return parse_image(url, limits, PARAM)


def data_uri(size: int) -> str:
    return "data:image/png;base64," + base64.b64encode(bytes(size)).decode()


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        ("data:image/png;base64", "image/png"),
        ("data:image/jpeg;base64", "image/jpeg"),
        ("data:image/jpg;base64", "image/jpeg"),
        ("data:image/gif;base64", "image/gif"),
        ("data:image/webp;base64", "image/webp"),
        ("DATA:Image/PNG;charset=utf-8;BASE64", "image/png"),
    ],
)
def test_a_data_uri_is_an_image(head: str, media_type: str) -> None:
    assert parse(f"{head},aGk=") == Image(media_type=media_type, data="aGk=")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "cat.png",
        "file:///cat.png",
        "data:",
        "data:image/png,aGk=",
        "data:image/png;base64,",
        "data:image/png;base64,aGk",
        "data:image/png;base64,a-k=",
        "data:image/png;base64,aGk=aGk=",
        "data:image/png;base64,äöüß",
        "data:image/svg+xml;base64,aGk=",
        "data:text/plain;base64,aGk=",
        "data:;base64,aGk=",
    ],
)
def test_anything_else_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse(url)

    assert (caught.value.code, caught.value.param) == ("unsupported_value", PARAM)


@pytest.mark.parametrize("url", ["http://host.example/cat.png", "HTTPS://host.example/cat.png"])
def test_an_address_is_passed_on_only_where_that_is_allowed(url: str) -> None:
    assert parse(url, ImageLimits(allow_urls=True)) == Image(url=url)

    with pytest.raises(InvalidRequestError) as caught:
        parse(url)

    assert caught.value.code == "unsupported_value"


@pytest.mark.parametrize("max_bytes", [98, 99, 100])
def test_an_image_may_be_as_large_as_the_limit_and_no_larger(max_bytes: int) -> None:
    limits = ImageLimits(max_bytes=max_bytes)

    parse(data_uri(max_bytes), limits)
    with pytest.raises(RequestTooLargeError) as caught:
        parse(data_uri(max_bytes + 1), limits)

    assert caught.value.param == PARAM
