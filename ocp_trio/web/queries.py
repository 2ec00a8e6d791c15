"""What may stand in the query of an operating endpoint."""

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from quart import request

from ocp_trio.openai.decoding import refusal

__all__ = ["LogsQuery", "UsageQuery", "read_query"]

MAX_HOURS = 24 * 400
"""Longest time that a report goes back, in hours: as long as rows are kept."""

Query = TypeVar("Query", bound=msgspec.Struct)
Rows = Annotated[int, Meta(ge=0, le=10_000)]
Time = Annotated[str, Meta(description="A date in ISO 8601 form.", extra_json_schema={"format": "date-time"})]


class LogsQuery(msgspec.Struct, frozen=True):
    """Which log entries to tell."""

    n: Rows = 100
    level: Literal["debug", "info", "warning", "error", "critical"] | UnsetType = UNSET
    event: str | UnsetType = UNSET
    after: Annotated[str, Meta(description="The `cursor` of an earlier answer: only what came after it.")] = ""


class UsageQuery(msgspec.Struct, frozen=True):
    """Whose usage to tell, and of which time."""

    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    hours: Annotated[int, Meta(ge=0, le=MAX_HOURS)] = 0
    limit: Rows = 50
    all: bool = False
    series: bool = False


def read_query(query: type[Query]) -> Query:
    """Read the current request's query; parameters that are not known are ignored.

    Raises:
        InvalidRequestError: a parameter makes no sense; ``param`` names it.
    """
    try:
        return msgspec.convert(request.args.to_dict(), query, strict=False)
    except msgspec.ValidationError as error:
        raise refusal(error) from error
