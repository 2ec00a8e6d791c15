"""Raise a lone error as itself: a nursery wraps even one in a group."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["lone_error", "unwrap_lone_error"]


def lone_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the only error of an exception group, however deep; the group itself if it holds several."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) > 1:
            return group
        error = error.exceptions[0]
    return error


@contextmanager
def unwrap_lone_error() -> Iterator[None]:
    """Raise the only error of an exception group in place of the group; other groups pass unchanged."""
    try:
        yield
    except BaseExceptionGroup as group:
        error = lone_error(group)
        if error is group:
            raise
        # The group adds nothing to the error's own traceback.
        raise error from error.__cause__
