"""Every knob of the server, read from the environment once; a value that does not parse stops the start."""

import ast
import inspect
import ipaddress
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any, Final

from ocp_trio.errors import SettingError
from ocp_trio.setting_kinds import FLAG, GRACE, MILLISECONDS, SWITCH, TEXT, WORDS, Kind, one_of, whole

__all__ = ["HEARTBEAT_FORMATS", "Settings", "descriptions", "is_loopback", "read_setting"]

HEARTBEAT_FORMATS: Final = ("comment", "comment-line", "empty-delta")
"""What a heartbeat may look like; the first is the default."""


def _setting(name: str, *, default: Any, kind: Kind = TEXT, secret: bool = False, live: bool = False) -> Any:  # noqa: ANN401 (like dataclasses.field)
    return field(default=default, repr=not secret, metadata={"name": name, "kind": kind, "live": live})


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All settings; the docstring under each names its unit, and what 0 does."""

    port: int = _setting("CLAUDE_PROXY_PORT", default=3456, kind=whole(0, 65535))
    """Port to listen on; 0 takes a free one."""
    bind: str = _setting("CLAUDE_BIND", default="127.0.0.1")
    """Address to listen on. Beyond the loopback a key is required."""
    claude_bin: str = _setting("CLAUDE_BIN", default="")
    """Path of the ``claude`` program; empty looks for it."""
    timeout: float = _setting("CLAUDE_TIMEOUT", default=600.0, kind=MILLISECONDS, live=True)
    """Milliseconds that a whole request may take, waiting for a slot included; 0 turns the limit off."""
    heartbeat_interval: float = _setting("CLAUDE_HEARTBEAT_INTERVAL", default=inf, kind=MILLISECONDS, live=True)
    """Milliseconds of silence after which a stream says that it is alive; 0 turns it off."""
    heartbeat_format: str = _setting(
        "CLAUDE_HEARTBEAT_FORMAT", default="comment", kind=one_of("comment", "comment-line", "empty-delta"), live=True
    )
    """What a heartbeat looks like: ``comment``, ``comment-line`` or ``empty-delta``."""
    nonstream_keepalive: float = _setting("CLAUDE_NONSTREAM_KEEPALIVE", default=inf, kind=MILLISECONDS, live=True)
    """Milliseconds of waiting after which a plain answer begins with white space; 0 turns it off."""
    early_headers: bool = _setting("OCP_EARLY_HEADERS", default=True, kind=FLAG, live=True)
    """1: a stream's headers go out when its child runs; 0: with its first event or heartbeat."""
    stall_timeout: float = _setting("CLAUDE_STALL_TIMEOUT", default=inf, kind=MILLISECONDS, live=True)
    """Milliseconds of silence of the child after which its answer is given up; 0 never gives up."""
    max_concurrent: int = _setting("CLAUDE_MAX_CONCURRENT", default=8, kind=whole(1, 10_000), live=True)
    """Children that run at once."""
    max_queue: int = _setting("CLAUDE_MAX_QUEUE", default=16, kind=whole(0, 1_000_000), live=True)
    """Requests that wait for a child; one more is refused."""
    queue_retry_after: float = _setting("CLAUDE_QUEUE_RETRY_AFTER", default=5.0, kind=whole(1, 86_400, "s"), live=True)
    """Seconds that a refused client is asked to wait."""
    warm_pool: int = _setting("CLAUDE_WARM_POOL", default=1, kind=whole(0, 100))
    """Children that are started ahead of requests, about 150 MiB each; 0 turns that off."""
    warm_conversations: int = _setting("CLAUDE_WARM_CONVERSATIONS", default=4, kind=whole(0, 1000), live=True)
    """Children that stay for the next turn of their conversation, about 150 MiB each; 0 turns that off."""
    max_body_size: int = _setting("CLAUDE_MAX_BODY_SIZE", default=32 * 2**20, kind=whole(1, 2**40, "bytes"))
    """Bytes of a request's body."""
    kill_grace: float = _setting("CLAUDE_KILL_GRACE", default=5.0, kind=GRACE)
    """Milliseconds between SIGTERM and SIGKILL; 0 kills at once."""
    write_timeout: float = _setting("OCP_WRITE_TIMEOUT", default=30.0, kind=MILLISECONDS)
    """Milliseconds after which a client that does not read is dropped; 0 waits for ever."""
    shutdown_grace: float = _setting("OCP_SHUTDOWN_GRACE", default=10.0, kind=GRACE)
    """Milliseconds that running requests have to finish after SIGTERM or SIGINT."""
    max_images: int = _setting("CLAUDE_MAX_IMAGES", default=20, kind=whole(0, 10_000), live=True)
    """Images of a request; 0 takes none."""
    max_image_bytes: int = _setting(
        "CLAUDE_MAX_IMAGE_BYTES", default=5 * 2**20, kind=whole(1, 2**40, "bytes"), live=True
    )
    """Bytes of one image, decoded."""
    max_image_total_bytes: int = _setting(
        "CLAUDE_MAX_IMAGE_TOTAL_BYTES", default=20 * 2**20, kind=whole(1, 2**40, "bytes"), live=True
    )
    """Bytes of all images of a request, decoded."""
    image_urls: bool = _setting("CLAUDE_IMAGE_ALLOW_URL", default=False, kind=SWITCH, live=True)
    """1 passes images that are given by http or https addresses on; this server fetches none."""
    structured_max_attempts: int = _setting("OCP_STRUCTURED_MAX_ATTEMPTS", default=3, kind=whole(1, 10), live=True)
    """How often an answer is asked for until it is as ``response_format`` wants it."""
    system_prompt: str = _setting("CLAUDE_SYSTEM_PROMPT", default="", live=True)
    """System prompt of requests that bring none."""
    auth_mode: str = _setting("CLAUDE_AUTH_MODE", default="none", kind=one_of("none", "shared", "multi"))
    """Who may call: ``none`` asks nobody for a key, ``shared`` asks everybody for ``PROXY_API_KEY``, ``multi``
    for a key of his own, made with ``POST /api/keys``."""
    proxy_api_key: str = _setting("PROXY_API_KEY", default="", secret=True)
    """The key of auth mode ``shared``."""
    admin_key: str = _setting("OCP_ADMIN_KEY", default="", secret=True)
    """The key that may make and revoke keys, and see everybody's usage."""
    anonymous_key: str = _setting("PROXY_ANONYMOUS_KEY", default="", secret=True)
    """A key of auth mode ``multi`` that is no secret: who uses it may ask for completions, as the key ``anonymous``."""
    store: str = _setting("OCP_STORE", default="", secret=True)
    """Where keys and usage are kept: a path or ``redis://…``; empty is ``~/.ocp``, in auth mode ``multi`` only."""
    store_down: str = _setting("OCP_STORE_DOWN", default="refuse", kind=one_of("refuse", "allow"))
    """What happens while the store does not answer to requests that a key is needed for: ``refuse`` answers 503,
    ``allow`` serves, uncounted, the holders of keys that this server has seen before."""
    cache_ttl: float = _setting("CLAUDE_CACHE_TTL", default=inf, kind=MILLISECONDS, live=True)
    """Milliseconds for which equal requests of one caller get the same answer; 0 turns that off."""
    allowed_hosts: tuple[str, ...] = _setting("OCP_ALLOWED_HOSTS", default=(), kind=WORDS)
    """Names beside the loopback's that a ``Host`` or ``Origin`` header may have, separated by commas."""
    allow_open: bool = _setting("OCP_ALLOW_OPEN", default=False, kind=FLAG)
    """1 lets a server beyond the loopback ask nobody for a key."""
    child_env: tuple[str, ...] = _setting("OCP_CHILD_ENV", default=(), kind=WORDS)
    """Environment names that pass to the child beside the usual ones, separated by commas."""
    allowed_tools: tuple[str, ...] = _setting("CLAUDE_ALLOWED_TOOLS", default=(), kind=WORDS)
    """The CLI's own tools that a prompt may use on this machine, separated by commas."""
    mcp_config: str = _setting("CLAUDE_MCP_CONFIG", default="")
    """Path of an MCP configuration whose servers a prompt may use."""
    setting_sources: str = _setting("CLAUDE_SETTING_SOURCES", default="")
    """The CLI's settings files that are read: any of ``user,project,local``."""
    unsafe_tools: bool = _setting("OCP_UNSAFE_TOOLS", default=False, kind=FLAG)
    """1 lets callers from beyond the loopback use those."""
    opencode_api_key: str = _setting("OPENCODE_API_KEY", default="", secret=True)
    """Key of OpenCode Go; with it, that provider's models are served too."""
    opencode_zen_api_key: str = _setting("OPENCODE_ZEN_API_KEY", default="", secret=True)
    """The same, by its other name."""
    opencode_base_url: str = _setting("OPENCODE_GO_BASE_URL", default="")
    """Where OpenCode Go is; empty is the provider's own address."""
    opencode_first_event_timeout: float = _setting(
        "OPENCODE_GO_FIRST_EVENT_TIMEOUT", default=300.0, kind=MILLISECONDS, live=True
    )
    """Milliseconds that OpenCode Go may take to the first content of an answer; 0 turns the limit off."""
    opencode_idle_timeout: float = _setting("OPENCODE_GO_IDLE_TIMEOUT", default=120.0, kind=MILLISECONDS, live=True)
    """Milliseconds that it may be silent in an answer; 0 turns the limit off."""
    opencode_keepalive_cap: float = _setting("OPENCODE_GO_KEEPALIVE_CAP", default=300.0, kind=MILLISECONDS, live=True)
    """Milliseconds that it may send nothing but keep-alives; 0 turns the limit off."""
    reasoning_content: bool = _setting("OCP_REASONING_CONTENT", default=False, kind=FLAG, live=True)
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
            if text := environment.get(each.metadata["name"]):
                values[each.name] = read_setting(each, text)
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
        if self.anonymous_key and self.anonymous_key in (self.admin_key, self.proxy_api_key):
            raise SettingError("PROXY_ANONYMOUS_KEY", "...", "this key is no secret, so no other may be the same")
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


def read_setting(setting: Field[Any], text: str) -> Any:  # noqa: ANN401 (each has its own type)
    """Return the value of one of the settings' fields; an empty text is its default.

    Raises:
        SettingError: the text does not parse.
    """
    if not text:
        return setting.default
    try:
        return setting.metadata["kind"].read(text)
    except ValueError as error:
        raise SettingError(setting.metadata["name"], text, str(error)) from error


@cache
def descriptions() -> Mapping[str, str]:
    """Return what stands under each field, by its name; nothing where the source is not at hand."""
    try:
        [body] = [node.body for node in ast.parse(inspect.getsource(Settings)).body if isinstance(node, ast.ClassDef)]
    except OSError:
        return {}
    return {
        node.target.id: " ".join(inspect.cleandoc(after.value.value).replace("``", "`").split())
        for node, after in pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    }


def is_loopback(host: str) -> bool:
    """Whether a host name or address, as in a ``Host`` header without its port, is this machine's loopback."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
