"""The address of a server is read as people write it; what is none is refused with a reason."""

import pytest

from ocp_trio.cli.address import own_address, parse_address
from ocp_trio.cli.failures import NotUsable
from ocp_trio.settings import Settings


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.com", "http://example.com:3456"),
        ("example.com:80", "http://example.com:80"),
        ("Example.COM", "http://example.com:3456"),
        ("a_b.test", "http://a_b.test:3456"),
        ("10.9.8.7", "http://10.9.8.7:3456"),
        ("::1", "http://[::1]:3456"),
        ("[::1]:99", "http://[::1]:99"),
        ("http://example.com", "http://example.com"),
        ("https://example.com/", "https://example.com"),
        ("https://example.com/v1", "https://example.com"),
        ("https://example.com:8443/ocp/v1/", "https://example.com:8443/ocp"),
        ("example.com/ocp/", "http://example.com:3456/ocp"),
        (" example.com ", "http://example.com:3456"),
        ("bücher.example", "http://bücher.example:3456"),
    ],
)
def test_an_address_becomes_the_url_that_paths_are_appended_to(text: str, url: str) -> None:
    assert parse_address(text).url == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no host name"),
        ("a..b", "is no host name"),
        ("-a.example", "is no host name"),
        ("a" * 64, "is no host name"),
        ("300.1.1.1", "is no IPv4 address"),
        ("1.2.3", "is no IPv4 address"),
        ("host:0", "a port is a number from 1 to 65535"),
        ("host:65536", "a port is a number from 1 to 65535"),
        ("host:x", "a port is a number from 1 to 65535"),
        ("http://[bad", "an IPv6 address stands in [brackets]"),
        ("ftp://host", "it has to begin with http://"),
        ("host/?key=1", "a host, a port and a path"),
        ("host#top", "a host, a port and a path"),
        ("a b", "blanks or control characters"),
        ("a\x1b[31m", "blanks or control characters"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(NotUsable, match=r"is no address of a server: ") as caught:
        parse_address(text)

    assert reason in str(caught.value)


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(NotUsable) as caught:
        parse_address("http://user:made-up@h/")

    assert "made-up" not in str(caught.value)


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:5000"),
        ("0.0.0.0", "http://127.0.0.1:5000"),
        ("::", "http://[::1]:5000"),
        ("[::1]", "http://[::1]:5000"),
        ("nas.test", "http://nas.test:5000"),
    ],
)
def test_a_server_is_reached_from_its_own_machine_where_it_listens(bind: str, url: str) -> None:
    assert own_address(Settings(bind=bind, port=5000)).url == url
