"""Count the tokens of an answer that may take several messages."""

from ocp_trio.claude.lines import ApiUsage
from ocp_trio.completion import Usage

__all__ = ["TokenCount"]


class TokenCount:
    """Sums what each message reports; used where no ``result`` line gives the total."""

    def __init__(self) -> None:
        self._settled = ApiUsage()
        self._message = ApiUsage()

    def begin_message(self, usage: ApiUsage | None) -> None:
        """Take the counts of a ``message_start``: the prompt's are final, the answer's are not."""
        self.settle()
        self._message = usage or ApiUsage()

    def update_output(self, usage: ApiUsage | None) -> None:
        """Take the answer's count from a ``message_delta``."""
        if usage is not None:
            start = self._message
            self._message = ApiUsage(
                start.input_tokens,
                start.cache_creation_input_tokens,
                start.cache_read_input_tokens,
                usage.output_tokens,
            )

    def settle(self) -> None:
        """Add the current message to the sum."""
        self._settled, self._message = self._sum(), ApiUsage()

    def so_far(self) -> Usage:
        """Return the sum by now; the answer's part of a message is told when it ends."""
        return _usage(self._sum())

    def total(self, reported: ApiUsage | None) -> Usage:
        """Return what the CLI reported for the whole turn, or else the sum."""
        self.settle()
        # An interrupted turn reports zeros.
        if reported is not None and reported.input_tokens + reported.output_tokens > 0:
            return _usage(reported)
        return _usage(self._settled)

    def _sum(self) -> ApiUsage:
        one, other = self._settled, self._message
        return ApiUsage(
            one.input_tokens + other.input_tokens,
            one.cache_creation_input_tokens + other.cache_creation_input_tokens,
            one.cache_read_input_tokens + other.cache_read_input_tokens,
            one.output_tokens + other.output_tokens,
        )


def _usage(counted: ApiUsage) -> Usage:
    reasoning = (counted.output_tokens_details or {}).get("thinking_tokens", 0)
    return Usage(
        input=counted.input_tokens,
        output=counted.output_tokens,
        cache_read=counted.cache_read_input_tokens,
        cache_write=counted.cache_creation_input_tokens,
        reasoning=reasoning if isinstance(reasoning, int) else 0,
    )
