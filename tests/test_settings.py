"""A wrong setting stops the start, and its message names it."""

from dataclasses import fields
from math import inf

import pytest

from ocp_trio.errors import SettingError
from ocp_trio.settings import Settings, is_loopback


def test_nothing_set_is_a_server_on_the_loopback_with_the_heartbeat_off() -> None:
    settings = Settings.from_environment({})

    assert settings == Settings()
    assert (settings.bind, settings.port, settings.timeout) == ("127.0.0.1", 3456, 600.0)
    assert (settings.heartbeat_interval, settings.stall_timeout) == (inf, inf)


def test_milliseconds_become_seconds_and_zero_turns_a_limit_off() -> None:
    settings = Settings.from_environment(
        {"CLAUDE_HEARTBEAT_INTERVAL": "1500", "CLAUDE_TIMEOUT": "0", "CLAUDE_KILL_GRACE": "0"}
    )

    assert (settings.heartbeat_interval, settings.timeout, settings.kill_grace) == (1.5, inf, 0)


def test_an_empty_value_counts_as_unset() -> None:
    names = {each.metadata["name"]: "" for each in fields(Settings)}

    assert Settings.from_environment(names) == Settings()


@pytest.mark.parametrize(
    "value",
    [
        "15s",
        "-5",
        "1e99",
        "nan",
        "inf",
        " 30000 ",
        "1.5",
        "+1",
        "0x10",
        "1_000",
        "\u0663",
        "9" * 30,
        "2147483648",
        "off",
    ],
)
@pytest.mark.parametrize(
    "name",
    ["CLAUDE_HEARTBEAT_INTERVAL", "CLAUDE_TIMEOUT", "CLAUDE_STALL_TIMEOUT", "CLAUDE_NONSTREAM_KEEPALIVE"],
)
def test_a_time_that_is_no_whole_number_of_milliseconds_is_refused_by_name_and_value(name: str, value: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.from_environment({name: value})

    assert name in str(caught.value)  # row 38
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLAUDE_PROXY_PORT", "65536"),
        ("CLAUDE_PROXY_PORT", "http"),
        ("CLAUDE_MAX_CONCURRENT", "0"),
        ("CLAUDE_MAX_QUEUE", "-1"),
        ("CLAUDE_QUEUE_RETRY_AFTER", "0"),
        ("CLAUDE_MAX_BODY_SIZE", "0"),
        ("CLAUDE_HEARTBEAT_FORMAT", "Comment"),
        ("CLAUDE_AUTH_MODE", "off"),
        ("OCP_EARLY_HEADERS", "true"),
        ("OCP_ALLOW_OPEN", "yes"),
        ("CLAUDE_IMAGE_ALLOW_URL", "maybe"),
        ("CLAUDE_MAX_IMAGES", "-1"),
        ("CLAUDE_MAX_IMAGE_BYTES", "0"),
        ("CLAUDE_MAX_IMAGE_TOTAL_BYTES", "20MB"),
        ("OCP_STRUCTURED_MAX_ATTEMPTS", "0"),
        ("OCP_STRUCTURED_MAX_ATTEMPTS", "abc"),
    ],
)
def test_a_value_out_of_its_range_is_refused_by_name_and_value(name: str, value: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.from_environment({name: value})

    assert name in str(caught.value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("value", "allowed"), [("1", True), ("TRUE", True), ("on", True), ("false", False), ("0", False)]
)
def test_a_switch_of_the_node_proxy_is_read_as_it_was_there(value: str, allowed: bool) -> None:
    assert Settings.from_environment({"CLAUDE_IMAGE_ALLOW_URL": value}).image_urls is allowed


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.168.1.5", "myhost"])
def test_beyond_the_loopback_a_key_is_required(bind: str) -> None:
    with pytest.raises(SettingError, match="CLAUDE_BIND"):
        Settings.from_environment({"CLAUDE_BIND": bind})

    Settings.from_environment({"CLAUDE_BIND": bind, "CLAUDE_AUTH_MODE": "shared", "PROXY_API_KEY": "k"})
    Settings.from_environment({"CLAUDE_BIND": bind, "OCP_ALLOW_OPEN": "1"})


def test_auth_mode_shared_needs_a_key() -> None:
    with pytest.raises(SettingError, match="PROXY_API_KEY"):
        Settings.from_environment({"CLAUDE_AUTH_MODE": "shared"})


@pytest.mark.parametrize("name", ["CLAUDE_ALLOWED_TOOLS", "CLAUDE_MCP_CONFIG", "CLAUDE_SETTING_SOURCES"])
def test_tools_on_this_machine_are_refused_to_callers_from_beyond_it(name: str) -> None:
    beyond = {"CLAUDE_BIND": "0.0.0.0", "CLAUDE_AUTH_MODE": "shared", "PROXY_API_KEY": "k", name: "Bash"}

    Settings.from_environment({name: "Bash"})
    with pytest.raises(SettingError, match=name):
        Settings.from_environment(beyond)
    Settings.from_environment({**beyond, "OCP_UNSAFE_TOOLS": "1"})


def test_a_key_never_shows_in_the_settings_own_text() -> None:
    settings = Settings.from_environment({"CLAUDE_AUTH_MODE": "shared", "PROXY_API_KEY": "hunter2"})

    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_names_of_the_loopback_are_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "10.0.0.1", "localhost.example", "127.0.0.1.example", "notlocalhost"])
def test_other_names_are_not_the_loopbacks(host: str) -> None:
    assert not is_loopback(host)
