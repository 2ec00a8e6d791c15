"""``ocp-trio connect``: what a client needs to use a server, tried before it is told."""

import os
from pathlib import Path

import click
from rich.text import Text

from ocp_trio.cli.address import Address, parse_address
from ocp_trio.cli.api import Api, open_api
from ocp_trio.cli.failures import Failure, NotAuthorised
from ocp_trio.cli.models import Model, ModelList
from ocp_trio.cli.screen import note, print_json, show
from ocp_trio.cli.snippets import CLIENTS, Connection, Snippet
from ocp_trio.cli.status import Health
from ocp_trio.cli.target import Target, json_option, key_from, key_option

__all__ = ["connect"]


@click.command()
@click.argument("host")
@click.option("--for", "client", type=click.Choice(list(CLIENTS)), help="Print this client's snippet and nothing else.")
@click.option("--model", help="Id of the model to name; otherwise a Sonnet, or the first that is served.")
@click.option("--show-key", is_flag=True, help="Put the key itself into the snippets for shells.")
@key_option
@json_option
def connect(
    host: str, *, client: str | None, model: str | None, show_key: bool, key_file: Path | None, as_json: bool
) -> None:
    """Print what clients need to use the server at HOST, after a look whether it answers.

    HOST is a name or an address, with a port if it is not 3456, or a URL. Nothing is written: put each snippet where
    its first line says, or for this shell: eval "$(ocp-trio connect HOST --for shell)". The key is PROXY_API_KEY or
    OPENAI_API_KEY, never the administrator's.

    --json prints an object: baseUrl, keyNeeded, model, models (ids), snippets (by client: file, text).
    """
    address = parse_address(host)
    key = key_from(os.environ, address, key_file, may_be_admin=False)
    needs_key, served = _look(address, key)
    chosen = _choose(served, model)
    connection = Connection(
        base_url=f"{address.url}/v1",
        key=key if needs_key and show_key else None,
        needs_key=needs_key,
        model=chosen,
        models=tuple(served),
    )
    if as_json:
        told = {name: {"file": each.file, "text": each.text} for name, each in _snippets(connection).items()}
        ids = [each.id for each in served]
        known = {"baseUrl": connection.base_url, "keyNeeded": needs_key, "model": chosen.id, "models": ids}
        print_json({**known, "snippets": told})
    elif client is not None:
        click.echo(CLIENTS[client](connection).text)
    else:
        _show(connection)


def _look(address: Address, key: str | None) -> tuple[bool, list[Model]]:
    """Return whether the server wants a key, and its models; the key is not sent to one that wants none."""
    with open_api(Target(address, None)) as api:
        needs_key = api.get("/health").read_as(Health).auth_mode != "none"
        if not needs_key:
            return False, _models(api)
    if key is None:
        raise NotAuthorised("this server wants a key: set OPENAI_API_KEY beside OPENAI_BASE_URL, or use --key-file")
    with open_api(Target(address, key)) as api:
        return True, _models(api)


def _models(api: Api) -> list[Model]:
    models = api.get("/v1/models").read_as(ModelList).data
    if not models:
        raise Failure("this server is well, but serves no model: `ocp-trio doctor` on its machine says why")
    return models


def _choose(served: list[Model], wanted: str | None) -> Model:
    if wanted is not None:
        for model in served:
            if model.id == wanted:
                return model
        raise Failure(f"the model {wanted!r} is not served there, but {', '.join(model.id for model in served)}")
    return next((model for model in served if "sonnet" in model.id), served[0])


def _snippets(connection: Connection) -> dict[str, Snippet]:
    return {name: make(connection) for name, make in CLIENTS.items()}


def _show(connection: Connection) -> None:
    for name, snippet in _snippets(connection).items():
        show(Text.assemble((name, "bold"), (f"  {snippet.file}", "dim")))
        # As it is: a line that is copied must not have been broken or aligned.
        click.echo(snippet.text + "\n")
    if connection.needs_key and connection.key is None:
        note("put your key where YOUR_KEY stands, or print it with --show-key")
