"""Say once that the engine of a store is down, and once that it is back."""

import logging

from ocp_trio.errors import StoreUnavailableError

__all__ = ["Outages"]

logger = logging.getLogger(__name__)


class Outages:
    """Whether an engine answers, as seen by the calls to it.

    Args:
        engine: What the log calls it.
    """

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._down = False

    def failed(self, cause: str) -> StoreUnavailableError:
        """Note that a call failed, and return what to raise for it.

        Args:
            cause: The kind of failure, for the log: no value of the call, no address, no path.
        """
        if not self._down:
            self._down = True
            logger.warning("store_down", extra={"engine": self._engine, "cause": cause})
        return StoreUnavailableError("the store of keys and usage does not answer")

    def answered(self) -> None:
        """Note that a call succeeded."""
        if self._down:
            self._down = False
            logger.info("store_up", extra={"engine": self._engine})
