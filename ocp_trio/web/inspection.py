"""What a server tells of itself: ``/v1/models``, ``/logs``."""

from ocp_trio.completion import Model
from ocp_trio.web.answers import Logs, ModelList, ModelObject
from ocp_trio.web.callers import Caller, require_admin
from ocp_trio.web.queries import LogsQuery, read_query
from ocp_trio.web.site import Site

__all__ = ["list_models", "newest_logs", "one_model"]

CREATED = 1_764_460_800
"""When the models were "created", in seconds since the epoch: clients want a number that does not change."""


def _model(model: Model, owner: str) -> ModelObject:
    described: ModelObject = {"id": model.id, "object": "model", "created": CREATED, "owned_by": owner}
    if model.context_window:
        described["context_window"] = model.context_window
    if model.max_output:
        described["max_output_tokens"] = model.max_output
    return described


def list_models(site: Site) -> ModelList:
    """Return OpenAI's list of models."""
    data = [_model(model, backend.name) for backend in site.backends for model in backend.models]
    return {"object": "list", "data": data}


def one_model(site: Site, name: str) -> ModelObject:
    """Return one model by its id or alias.

    Raises:
        ModelNotFoundError: it is not served.
    """
    backend, model_id = site.backend_for(name)
    known = {model.id: model for model in backend.models}
    return _model(known.get(model_id, Model(model_id, 0, 0)), backend.name)


def newest_logs(site: Site, caller: Caller) -> Logs:
    """Return the newest log entries, as ``?n=&level=&event=&after=`` ask: ``after`` is a ``cursor`` told before.

    They tell of all callers: where each has a key of his own they are the administrator's.

    Raises:
        PermissionDeniedError: the caller is not the administrator.
        InvalidRequestError: a parameter makes no sense.
    """
    if site.settings.auth_mode == "multi":
        require_admin(caller)
    query = read_query(LogsQuery)
    page = site.ring.read(query.n, level=query.level or None, event=query.event or None, after=query.after)
    return {
        "count": len(page.entries),
        "level": query.level or "all",
        "entries": page.entries,
        "cursor": page.cursor,
        "missed": page.missed,
    }
