"""Make keys, and tell whether a text is one, without keeping any: a store holds their hashes."""

import hashlib
import hmac
import secrets
from typing import Final

from ocp_trio.errors import InvalidRequestError

__all__ = [
    "MAX_NAME",
    "check_name",
    "hash_secret",
    "make_id",
    "make_secret",
    "name_taken",
    "preview",
    "same_hash",
    "searchable",
]

PREFIX: Final = "ocp_"
"""What every key begins with, so that scanners for leaked secrets can find one."""
ENTROPY: Final = 32
"""Random bytes of a key: 43 characters after the prefix."""
MAX_NAME: Final = 200
"""Characters of a key's name."""


def make_secret() -> str:
    """Return a new key."""
    return PREFIX + secrets.token_urlsafe(ENTROPY)


def make_id() -> str:
    """Return the id of a new key: no secret, and never the name of one by accident."""
    return f"key_{secrets.token_hex(8)}"


def hash_secret(secret: str) -> str:
    """Return what is stored of a key, as hexadecimal text.

    A plain SHA-256, without salt or stretching: those protect what people can remember and others can guess. Nobody
    guesses 256 random bits, and every request pays for the hash.
    """
    # A header may hold any character, halves of surrogate pairs among them.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def same_hash(left: str, right: str) -> bool:
    """Compare two hashes in a time that tells nothing about where they differ."""
    return hmac.compare_digest(left.encode(), right.encode())


def preview(secret: str) -> str:
    """Return the part of a key that may be shown: 8 of its 43 random characters."""
    return f"{secret[: len(PREFIX) + 4]}...{secret[-4:]}"


def check_name(name: str) -> None:
    """Refuse what cannot name a key.

    Raises:
        InvalidRequestError: it is empty, longer than 200 characters, or cannot be written in UTF-8.
    """
    if not name.strip() or len(name) > MAX_NAME:
        raise InvalidRequestError(f"name must have 1 to {MAX_NAME} characters", param="name")
    try:
        name.encode()
    except UnicodeEncodeError:
        # Not chained: the cause would quote the name.
        raise InvalidRequestError("name holds half a surrogate pair", param="name") from None


def name_taken() -> InvalidRequestError:
    """Return what to raise where another key has the name."""
    return InvalidRequestError("another key has this name", code="name_taken", param="name")


def searchable(text: str) -> str:
    """Return an id or a name as a store can look it up: half a surrogate pair stands in none."""
    return text.encode("utf-8", "replace").decode()
