"""Know who calls: nobody in particular, the holder of a key, or the administrator."""

import hmac
from functools import partial

import msgspec
from werkzeug.datastructures import Headers

from ocp_trio.errors import InvalidApiKeyError, PermissionDeniedError
from ocp_trio.settings import Settings, is_loopback
from ocp_trio.store import Store
from ocp_trio.web.anonymous import find_anonymous
from ocp_trio.web.guards import read_key
from ocp_trio.web.known_keys import KnownKeys

__all__ = ["ANYBODY", "Caller", "identify", "is_known", "require_admin"]


class Caller(msgspec.Struct, frozen=True):
    """Whoever made a request; ``key_id`` and ``name`` are those of the key in auth mode ``multi``.

    ``is_anonymous`` is whoever uses the key that is no secret: he may ask for completions, and that is all.
    """

    key_id: str | None = None
    name: str | None = None
    is_admin: bool = False
    is_anonymous: bool = False


ANYBODY = Caller()


def _same(sent: str, expected: str) -> bool:
    # Compared as bytes, in constant time: a str with other than ASCII characters cannot be.
    return hmac.compare_digest(sent.encode("utf-8", "surrogateescape"), expected.encode())


async def identify(headers: Headers, settings: Settings, store: Store | None, known: KnownKeys) -> Caller:
    """Return who sent these headers.

    Raises:
        InvalidApiKeyError: a key is required, and none, a wrong one, or two that differ were sent.
        StoreUnavailableError: keys cannot be looked up now.
    """
    if settings.auth_mode == "none" and not settings.admin_key:
        return ANYBODY
    try:
        sent = read_key(headers)
    except InvalidApiKeyError:
        if settings.auth_mode == "none":
            return ANYBODY
        raise
    if settings.admin_key and _same(sent, settings.admin_key):
        return Caller(name="admin", is_admin=True)
    if settings.auth_mode == "none" or (settings.auth_mode == "shared" and _same(sent, settings.proxy_api_key)):
        return ANYBODY
    if settings.auth_mode == "multi" and store is not None and (caller := await _holder(sent, settings, store, known)):
        return caller
    raise InvalidApiKeyError("the API key is wrong")


async def _holder(sent: str, settings: Settings, store: Store, known: KnownKeys) -> Caller | None:
    """Return whose key this is."""
    is_anonymous = bool(settings.anonymous_key) and _same(sent, settings.anonymous_key)
    look_up = partial(find_anonymous, store.keys) if is_anonymous else partial(store.keys.authenticate, sent)
    key = await known.authenticate(sent, look_up)
    return None if key is None else Caller(key.id, key.name, is_anonymous=is_anonymous)


def is_known(caller: Caller, settings: Settings) -> bool:
    """Whether this is somebody: who has shown a key, or, where nobody is asked for one, who is on this machine."""
    return caller != ANYBODY or settings.auth_mode != "none" or is_loopback(settings.bind)


def require_admin(caller: Caller) -> None:
    """Let the administrator through.

    Raises:
        PermissionDeniedError: it is somebody else.
    """
    if not caller.is_admin:
        raise PermissionDeniedError("this needs the administrator's key (OCP_ADMIN_KEY)")
