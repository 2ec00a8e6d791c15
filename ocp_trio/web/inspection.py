"""What a server tells of itself: ``/v1/models``, ``/health``, ``/logs``."""

from typing import Any

import trio

from ocp_trio import __version__
from ocp_trio.completion import Model
from ocp_trio.web.answers import Logs, ModelList, ModelObject
from ocp_trio.web.queries import LogsQuery, read_query
from ocp_trio.web.site import Site

__all__ = ["health", "list_models", "newest_logs", "one_model"]

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


def health(site: Site) -> dict[str, Any]:
    """Return the state of the server; times are in milliseconds. Nothing in it is secret."""
    stats, settings = site.stats, site.settings
    states = [backend.state for backend in site.backends]
    queued = sum(state.queued for state in states)
    rejections = sum(state.queue_rejections for state in states)
    return {
        "status": "draining" if site.lifecycle.draining else "ok",
        "version": __version__,
        "uptime": round((trio.current_time() - site.started) * 1000),
        "authMode": settings.auth_mode,
        "instanceName": settings.instance_name,
        "backends": [backend.name for backend in site.backends],
        "config": {
            "timeout": 0 if settings.timeout == float("inf") else round(settings.timeout * 1000),
            "maxConcurrent": settings.max_concurrent,
        },
        "stats": {
            "totalRequests": stats.total,
            "activeRequests": site.lifecycle.active.value,
            "succeeded": stats.succeeded,
            "errors": stats.errors,
            "timeouts": stats.timeouts,
            "cancelled": stats.cancelled,
            "queued": queued,
            "queueRejections": rejections,
        },
        "concurrency": {
            "maxConcurrent": settings.max_concurrent,
            "maxQueue": settings.max_queue,
            "inflight": sum(state.in_flight for state in states),
            "queued": queued,
            "queueRejections": rejections,
        },
        "store": _store(site),
        "warm": {backend.name: backend.state.warm for backend in site.backends if backend.state.warm},
    }


def _store(site: Site) -> dict[str, Any] | None:
    """Return whether the store answers, as far as is known: nobody who asks waits for it."""
    if site.store is None:
        return None
    state = site.store.state
    return {
        "engine": state.engine,
        "ok": not state.cause,
        "cause": state.cause or None,
        "lostRows": site.stats.lost_rows,
    }


def newest_logs(site: Site) -> Logs:
    """Return the newest log entries, as ``?n=&level=&event=&after=`` ask: ``after`` is a ``cursor`` told before.

    Raises:
        InvalidRequestError: a parameter makes no sense.
    """
    query = read_query(LogsQuery)
    page = site.ring.read(query.n, level=query.level or None, event=query.event or None, after=query.after)
    return {
        "count": len(page.entries),
        "level": query.level or "all",
        "entries": page.entries,
        "cursor": page.cursor,
        "missed": page.missed,
    }
