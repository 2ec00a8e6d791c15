"""Every knob of the server, read from the environment once; a value that does not parse stops the start."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, Final

from ocp_trio.errors import SettingError

__all__ = ["HEARTBEAT_FORMATS", "MAX_MILLISECONDS", "Settings", "is_loopback"]

MAX_MILLISECONDS: Final = 2**31 - 1
"""Longest time accepted: what fits the timers of the Node proxy, whose settings these are; 24.8 days."""

HEARTBEAT_FORMATS: Final = ("comment", "comment-line", "empty-delta")
"""What a heartbeat may look like; the first is the default."""

_DIGITS = re.compile(r"[0-9]+", re.ASCII)


def _whole(text: str) -> int:
    if not _DIGITS.fullmatch(text) or len(text) > 18:
        raise ValueError("a whole number is expected")
    return int(text)


def _between(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = _whole(text)
        if not low <= number <= high:
            raise ValueError(f"a whole number from {low} to {high} is expected")
        return number

    return parse


def _milliseconds(text: str) -> float:
    """Seconds; 0 turns the limit off."""
    return _between(0, MAX_MILLISECONDS)(text) / 1000 or inf


def _grace(text: str) -> float:
    """Seconds; 0 means no time at all."""
    return _between(0, MAX_MILLISECONDS)(text) / 1000


def _flag(text: str) -> bool:
    if text not in {"0", "1"}:
        raise ValueError("0 or 1 is expected")
    return text == "1"


def _switch(text: str) -> bool:
    """Read a flag of the Node proxy's, which took more than 0 and 1."""
    on, off = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
    if text.lower() not in on | off:
        raise ValueError("0 or 1 is expected")
    return text.lower() in on


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)} is expected")
        return text

    return parse


def _setting(name: str, *, default: Any, parse: Callable[[str], Any] = str, secret: bool = False) -> Any:  # noqa: ANN401 (like dataclasses.field)
    return field(default=default, repr=not secret, metadata={"name": name, "parse": parse})


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All settings; the docstring under each names its unit, and what 0 does."""

    port: int = _setting("CLAUDE_PROXY_PORT", default=3456, parse=_between(0, 65535))
    """Port to listen on; 0 takes a free one."""
    bind: str = _setting("CLAUDE_BIND", default="127.0.0.1")
    """Address to listen on. Beyond the loopback a key is required."""
    claude_bin: str = _setting("CLAUDE_BIN", default="")
    """Path of the ``claude`` program; empty looks for it."""
    timeout: float = _setting("CLAUDE_TIMEOUT", default=600.0, parse=_milliseconds)
    """Milliseconds that a whole request may take, waiting for a slot included; 0 turns the limit off."""
    heartbeat_interval: float = _setting("CLAUDE_HEARTBEAT_INTERVAL", default=inf, parse=_milliseconds)
    """Milliseconds of silence after which a stream says that it is alive; 0 turns it off."""
    heartbeat_format: str = _setting(
        "CLAUDE_HEARTBEAT_FORMAT", default="comment", parse=_one_of("comment", "comment-line", "empty-delta")
    )
    """What a heartbeat looks like: ``comment``, ``comment-line`` or ``empty-delta``."""
    nonstream_keepalive: float = _setting("CLAUDE_NONSTREAM_KEEPALIVE", default=inf, parse=_milliseconds)
    """Milliseconds of waiting after which a plain answer begins with white space; 0 turns it off."""
    early_headers: bool = _setting("OCP_EARLY_HEADERS", default=True, parse=_flag)
    """1: a stream's headers go out when its child runs; 0: with its first event or heartbeat."""
    stall_timeout: float = _setting("CLAUDE_STALL_TIMEOUT", default=inf, parse=_milliseconds)
    """Milliseconds of silence of the child after which its answer is given up; 0 never gives up."""
    max_concurrent: int = _setting("CLAUDE_MAX_CONCURRENT", default=8, parse=_between(1, 10_000))
    """Children that run at once."""
    max_queue: int = _setting("CLAUDE_MAX_QUEUE", default=16, parse=_between(0, 1_000_000))
    """Requests that wait for a child; one more is refused."""
    queue_retry_after: float = _setting("CLAUDE_QUEUE_RETRY_AFTER", default=5.0, parse=_between(1, 86_400))
    """Seconds that a refused client is asked to wait."""
    warm_pool: int = _setting("CLAUDE_WARM_POOL", default=1, parse=_between(0, 100))
    """Children that are started ahead of requests, about 150 MiB each; 0 turns that off."""
    warm_conversations: int = _setting("CLAUDE_WARM_CONVERSATIONS", default=4, parse=_between(0, 1000))
    """Children that stay for the next turn of their conversation, about 150 MiB each; 0 turns that off."""
    max_body_size: int = _setting("CLAUDE_MAX_BODY_SIZE", default=32 * 2**20, parse=_between(1, 2**40))
    """Bytes of a request's body."""
    kill_grace: float = _setting("CLAUDE_KILL_GRACE", default=5.0, parse=_grace)
    """Milliseconds between SIGTERM and SIGKILL; 0 kills at once."""
    write_timeout: float = _setting("OCP_WRITE_TIMEOUT", default=30.0, parse=_milliseconds)
    """Milliseconds after which a client that does not read is dropped; 0 waits for ever."""
    shutdown_grace: float = _setting("OCP_SHUTDOWN_GRACE", default=10.0, parse=_grace)
    """Milliseconds that running requests have to finish after SIGTERM or SIGINT."""
    max_images: int = _setting("CLAUDE_MAX_IMAGES", default=20, parse=_between(0, 10_000))
    """Images of a request; 0 takes none."""
    max_image_bytes: int = _setting("CLAUDE_MAX_IMAGE_BYTES", default=5 * 2**20, parse=_between(1, 2**40))
    """Bytes of one image, decoded."""
    max_image_total_bytes: int = _setting("CLAUDE_MAX_IMAGE_TOTAL_BYTES", default=20 * 2**20, parse=_between(1, 2**40))
    """Bytes of all images of a request, decoded."""
    image_urls: bool = _setting("CLAUDE_IMAGE_ALLOW_URL", default=False, parse=_switch)
    """1 passes images that are given by http or https addresses on; this server fetches none."""
    structured_max_attempts: int = _setting("OCP_STRUCTURED_MAX_ATTEMPTS", default=3, parse=_between(1, 10))
    """How often an answer is asked for until it is as ``response_format`` wants it."""
    system_prompt: str = _setting("CLAUDE_SYSTEM_PROMPT", default="")
    """System prompt of requests that bring none."""
    auth_mode: str = _setting("CLAUDE_AUTH_MODE", default="none", parse=_one_of("none", "shared", "multi"))
    """Who may call: ``none`` asks nobody for a key, ``shared`` asks everybody for ``PROXY_API_KEY``, ``multi``
    for a key of his own, made with ``POST /api/keys``."""
    proxy_api_key: str = _setting("PROXY_API_KEY", default="", secret=True)
    """The key of auth mode ``shared``."""
    admin_key: str = _setting("OCP_ADMIN_KEY", default="", secret=True)
    """The key that may make and revoke keys, and see everybody's usage."""
    store: str = _setting("OCP_STORE", default="")
    """Where keys and usage are kept: a path or ``redis://…``; empty is ``~/.ocp``, in auth mode ``multi`` only."""
    cache_ttl: float = _setting("CLAUDE_CACHE_TTL", default=inf, parse=_milliseconds)
    """Milliseconds for which equal requests of one caller get the same answer; 0 turns that off."""
    allowed_hosts: tuple[str, ...] = _setting("OCP_ALLOWED_HOSTS", default=(), parse=_words)
    """Names beside the loopback's that a ``Host`` or ``Origin`` header may have, separated by commas."""
    allow_open: bool = _setting("OCP_ALLOW_OPEN", default=False, parse=_flag)
    """1 lets a server beyond the loopback ask nobody for a key."""
    child_env: tuple[str, ...] = _setting("OCP_CHILD_ENV", default=(), parse=_words)
    """Environment names that pass to the child beside the usual ones, separated by commas."""
    allowed_tools: tuple[str, ...] = _setting("CLAUDE_ALLOWED_TOOLS", default=(), parse=_words)
    """The CLI's own tools that a prompt may use on this machine, separated by commas."""
    mcp_config: str = _setting("CLAUDE_MCP_CONFIG", default="")
    """Path of an MCP configuration whose servers a prompt may use."""
    setting_sources: str = _setting("CLAUDE_SETTING_SOURCES", default="")
    """The CLI's settings files that are read: any of ``user,project,local``."""
    unsafe_tools: bool = _setting("OCP_UNSAFE_TOOLS", default=False, parse=_flag)
    """1 lets callers from beyond the loopback use those."""
    opencode_api_key: str = _setting("OPENCODE_API_KEY", default="", secret=True)
    """Key of OpenCode Go; with it, that provider's models are served too."""
    opencode_zen_api_key: str = _setting("OPENCODE_ZEN_API_KEY", default="", secret=True)
    """The same, by its other name."""
    opencode_base_url: str = _setting("OPENCODE_GO_BASE_URL", default="")
    """Where OpenCode Go is; empty is the provider's own address."""
    opencode_first_event_timeout: float = _setting(
        "OPENCODE_GO_FIRST_EVENT_TIMEOUT", default=300.0, parse=_milliseconds
    )
    """Milliseconds that OpenCode Go may take to the first content of an answer; 0 turns the limit off."""
    opencode_idle_timeout: float = _setting("OPENCODE_GO_IDLE_TIMEOUT", default=120.0, parse=_milliseconds)
    """Milliseconds that it may be silent in an answer; 0 turns the limit off."""
    opencode_keepalive_cap: float = _setting("OPENCODE_GO_KEEPALIVE_CAP", default=300.0, parse=_milliseconds)
    """Milliseconds that it may send nothing but keep-alives; 0 turns the limit off."""
    reasoning_content: bool = _setting("OCP_REASONING_CONTENT", default=False, parse=_flag)
    """1 sends the model's reasoning as ``reasoning_content``."""
    instance_name: str = _setting("OCP_INSTANCE_NAME", default="ocp-trio")
    """What ``/health`` calls this server."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read all settings; an empty value counts as unset.

        Raises:
            SettingError: a value does not parse, or two contradict each other.
        """
        values = {}
        for each in fields(cls):
            name: str = each.metadata["name"]
            text = environment.get(name, "")
            if text == "":
                continue
            try:
                values[each.name] = each.metadata["parse"](text)
            except ValueError as error:
                raise SettingError(name, text, str(error)) from error
        settings = cls(**values)
        settings.check()
        return settings

    @property
    def keeps_accounts(self) -> bool:
        """Whether there is a store at all."""
        return self.auth_mode == "multi" or bool(self.store) or self.cache_ttl < inf

    def check(self) -> None:
        """Refuse combinations that would open the machine to callers from elsewhere.

        Raises:
            SettingError: naming the setting to change.
        """
        beyond = not is_loopback(self.bind)
        if self.auth_mode == "shared" and not self.proxy_api_key:
            raise SettingError("PROXY_API_KEY", "", "auth mode shared needs a key")
        if self.auth_mode == "multi" and not self.admin_key:
            raise SettingError("OCP_ADMIN_KEY", "", "auth mode multi needs a key that may make the others")
        if beyond and self.auth_mode == "none" and not self.allow_open:
            problem = "beyond the loopback a key is needed: set CLAUDE_AUTH_MODE=shared and PROXY_API_KEY"
            raise SettingError("CLAUDE_BIND", self.bind, f"{problem}, or OCP_ALLOW_OPEN=1")
        for name, value in (
            ("CLAUDE_ALLOWED_TOOLS", ",".join(self.allowed_tools)),
            ("CLAUDE_MCP_CONFIG", self.mcp_config),
            ("CLAUDE_SETTING_SOURCES", self.setting_sources),
        ):
            if value and (beyond or self.auth_mode == "multi") and not self.unsafe_tools:
                problem = "not beyond the loopback or in auth mode multi, unless OCP_UNSAFE_TOOLS=1"
                raise SettingError(name, value, problem)


def is_loopback(host: str) -> bool:
    """Whether a host name or address, as in a ``Host`` header without its port, is this machine's loopback."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
