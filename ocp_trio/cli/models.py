"""``ocp-trio models``: what is served."""

import click
import msgspec

from ocp_trio.cli.api import open_api
from ocp_trio.cli.screen import cell, print_json, show, table
from ocp_trio.cli.target import Target, takes_target
from ocp_trio.cli.text import count

__all__ = ["Model", "ModelList", "models"]


class Model(msgspec.Struct, frozen=True):
    """A model, as ``GET /v1/models`` describes it."""

    id: str
    owned_by: str = ""
    context_window: int | None = None
    max_output_tokens: int | None = None


class ModelList(msgspec.Struct, frozen=True):
    """The answer of ``GET /v1/models``."""

    data: list[Model]


@click.command()
@takes_target
def models(target: Target, *, as_json: bool) -> None:
    """List the models that are served.

    --json prints the answer of GET /v1/models.
    """
    with open_api(target) as api:
        answer = api.get("/v1/models")
    if as_json:
        print_json(answer.value)
        return
    rows = table("model", "backend", "context window", "longest answer", right=("context window", "longest answer"))
    for model in answer.read_as(ModelList).data:
        rows.add_row(
            cell(model.id),
            cell(model.owned_by, "dim"),
            cell(model.context_window and count(model.context_window)),
            cell(model.max_output_tokens and count(model.max_output_tokens)),
        )
    show(rows)
