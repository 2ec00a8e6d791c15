"""Let those whose keys were found right go on while the store is down, where the operator wants that."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from ocp_trio.errors import StoreUnavailableError
from ocp_trio.store import ApiKey
from ocp_trio.store.key_secrets import hash_secret

__all__ = ["KnownKeys"]

CAPACITY: Final = 10_000
"""Keys that are remembered, about 300 bytes each; the one that has not been used for the longest time goes first."""


class KnownKeys:
    """The keys that this server has found right, by their hashes.

    Args:
        trusted: Whether they count while the store is down; otherwise nobody does.
    """

    def __init__(self, *, trusted: bool) -> None:
        self._trusted = trusted
        self._keys: OrderedDict[str, ApiKey] = OrderedDict()

    async def authenticate(self, secret: str, look_up: Callable[[], Awaitable[ApiKey | None]]) -> ApiKey | None:
        """Return the key whose secret this is, as ``look_up`` finds it.

        Raises:
            StoreUnavailableError: it cannot be looked up now, and is not known from before, or that does not count.
        """
        hashed = hash_secret(secret)
        try:
            found = await look_up()
        except StoreUnavailableError:
            if (known := self._keys.get(hashed)) is None:
                raise
            return known
        self._keys.pop(hashed, None)
        if found is not None and self._trusted:
            self._keys[hashed] = found
            if len(self._keys) > CAPACITY:
                self._keys.popitem(last=False)
        return found

    def forget(self, key_id: str) -> None:
        """Trust a key no more: it has been revoked."""
        for hashed in [hashed for hashed, key in self._keys.items() if key.id == key_id]:
            del self._keys[hashed]
