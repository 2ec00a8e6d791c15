"""The key that is no secret: whoever uses it is ``anonymous``, with one name and one quota for all of them."""

from ocp_trio.errors import InvalidRequestError
from ocp_trio.store import ApiKey, Keys

__all__ = ["ANONYMOUS", "find_anonymous"]

ANONYMOUS = "anonymous"
"""Name of the key among the others: its quota is set, and it is revoked, by that."""


async def find_anonymous(keys: Keys) -> ApiKey | None:
    """Return what is kept of the key, which is begun with its first use; None where it has been revoked.

    Raises:
        StoreUnavailableError: that cannot be looked up now.
    """
    found = await keys.find(ANONYMOUS)
    if found is None:
        try:
            # Its own secret is nobody's: callers are known by the setting.
            found = (await keys.create(ANONYMOUS)).key
        except InvalidRequestError:
            # Another request, here or elsewhere, has begun it meanwhile.
            found = await keys.find(ANONYMOUS)
    return None if found is None or found.revoked else found
