"""Turn batches into bytes and back, errors included, so that another task or another server can tell them anew."""

from typing import Any, Final

import msgspec

from ocp_trio import errors
from ocp_trio.completion import Batch
from ocp_trio.errors import OcpError, StallFacts, UpstreamError

__all__ = ["decode_batch", "encode_batch"]

_KINDS: Final = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OcpError)
}


class _Error(msgspec.Struct, frozen=True, array_like=True):
    """An error as its class, its message and its attributes."""

    kind: str
    message: str
    attributes: dict[str, Any]


def _flatten(error: object) -> _Error | str:
    if not isinstance(error, OcpError):
        # An attribute that no client is shown, such as the value of a setting.
        return str(error)
    return _Error(type(error).__name__, str(error), vars(error))


def _restore(_: type, value: Any) -> OcpError:  # noqa: ANN401 (what was decoded so far)
    flat = msgspec.convert(value, _Error)
    # A server of another version may know errors that this one does not.
    kind = _KINDS.get(flat.kind, UpstreamError)
    error = kind.__new__(kind, flat.message)
    vars(error).update(flat.attributes)
    if "facts" in flat.attributes:
        vars(error)["facts"] = msgspec.convert(flat.attributes["facts"], StallFacts)
    return error


encode_batch = msgspec.msgpack.Encoder(enc_hook=_flatten).encode
decode_batch = msgspec.msgpack.Decoder(Batch, dec_hook=_restore).decode
