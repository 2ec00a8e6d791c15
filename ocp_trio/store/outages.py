"""Say once that the engine of a store is down, and once that it is back."""

import logging

from ocp_trio.errors import StoreUnavailableError

__all__ = ["Outages"]

logger = logging.getLogger(__name__)


class Outages:
    """Whether an engine answers, as seen by the calls to it.

    Args:
        engine: What the log calls it.

    Attributes:
        cause: What its last call failed with; nothing where it succeeded.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.cause = ""

    def failed(self, cause: str) -> StoreUnavailableError:
        """Note that a call failed, and return what to raise for it.

        Args:
            cause: The kind of failure, for the log: no value of the call, no address, no path.
        """
        if not self.cause:
            logger.warning("store_down", extra={"engine": self.engine, "cause": cause})
        self.cause = cause
        return StoreUnavailableError("the store of keys and usage does not answer")

    def answered(self) -> None:
        """Note that a call succeeded."""
        if self.cause:
            self.cause = ""
            logger.info("store_up", extra={"engine": self.engine})
