"""Read the images of a request: data URIs, within limits."""

import binascii

import msgspec

from ocp_trio.completion import Image
from ocp_trio.errors import InvalidRequestError, RequestTooLargeError

__all__ = ["DEFAULT_IMAGE_LIMITS", "ImageLimits", "decoded_size", "parse_image"]

_MEDIA_TYPES = {
    "image/gif": "image/gif",
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/webp": "image/webp",
}


class ImageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What is accepted of images.

    ``max_count`` images in one request, 0 for none; ``max_bytes`` of one image and ``max_total_bytes`` of all of them,
    base64 decoded; ``allow_urls`` passes http and https addresses on, for upstream to fetch.
    """

    max_count: int = 20
    max_bytes: int = 5 * 2**20
    max_total_bytes: int = 20 * 2**20
    allow_urls: bool = False


DEFAULT_IMAGE_LIMITS = ImageLimits()


def decoded_size(data: str) -> int:
    """Return the bytes that base64 ``data`` stands for: 3 in 4 characters, padding aside."""
    return len(data) // 4 * 3 - data[-2:].count("=")


def parse_image(url: str, limits: ImageLimits, param: str) -> Image:
    """Read the ``url`` of an image part; ``param`` is its place in the request.

    Raises:
        InvalidRequestError: neither a base64 data URI of a known image type nor an address that may be passed on.
        RequestTooLargeError: the image is over ``limits.max_bytes``.
    """
    scheme = url[:8].lower()
    if scheme.startswith("data:"):
        return _parse_data_uri(url, limits, param)
    if not scheme.startswith(("http://", "https://")):
        raise _refusal(param, "not a data URI")
    if not limits.allow_urls:
        raise _refusal(param, "images by address are not fetched here; send a base64 data URI")
    return Image(url=url)


def _parse_data_uri(url: str, limits: ImageLimits, param: str) -> Image:
    head, _, data = url.partition(",")
    media_type, *attributes = head[len("data:") :].lower().split(";")
    if media_type not in _MEDIA_TYPES:
        raise _refusal(param, "the image has to be png, jpeg, gif or webp")
    if "base64" not in attributes:
        raise _refusal(param, "the data URI has to be base64")
    # What is too large is not decoded first.
    if decoded_size(data) > limits.max_bytes:
        raise RequestTooLargeError(f"{param}: the image is over {limits.max_bytes} bytes", param=param)
    try:
        decoded = binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:
        raise _refusal(param, "not valid base64") from error
    if not decoded:
        raise _refusal(param, "the image is empty")
    return Image(media_type=_MEDIA_TYPES[media_type], data=data)


def _refusal(param: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"{param}: {problem}", code="unsupported_value", param=param)
