"""Run it for others: keys, quotas and usage, in the shapes that users of the Node proxy know."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from quart import request

from ocp_trio.errors import InvalidRequestError, NotFoundError
from ocp_trio.openai.decoding import decode
from ocp_trio.store import ApiKey, Quota, Store, Totals, UsageRow
from ocp_trio.web.callers import Caller, require_admin
from ocp_trio.web.guards import whole_number
from ocp_trio.web.site import Site

__all__ = ["cache_stats", "clear_cache", "create_key", "list_keys", "read_quota", "revoke_key", "set_quota", "usage"]

MAX_HOURS = 24 * 400
"""Longest time that a report goes back, in hours: as long as rows are kept."""


class _NewKey(msgspec.Struct, frozen=True):
    name: str


class _Quota(msgspec.Struct, frozen=True):
    daily: int | None = None
    weekly: int | None = None
    monthly: int | None = None


_new_key = msgspec.json.Decoder(_NewKey)
_quota = msgspec.json.Decoder(_Quota)


def _store(site: Site) -> Store:
    if site.store is None:
        raise NotFoundError("this server keeps no keys, no usage and no cache: CLAUDE_AUTH_MODE=multi turns that on")
    return site.store


def _administered(site: Site, caller: Caller) -> Store:
    """Return the store to the administrator."""
    store = _store(site)
    require_admin(caller)
    return store


async def _body() -> bytes:
    return await request.get_data(cache=True, as_text=False, parse_form_data=False)


def _describe(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "keyPreview": key.preview,
        "name": key.name,
        "created_at": key.created_at.isoformat(),
        "revoked": key.revoked,
        **{f"quota_{period}": limit for period, limit in asdict(key.quota).items()},
    }


async def create_key(site: Site, caller: Caller) -> tuple[dict[str, Any], int]:
    """Make a key: the only time that its secret is told."""
    made = await _administered(site, caller).keys.create(decode(await _body(), _new_key).name)
    return {"id": made.key.id, "key": made.secret, "name": made.key.name}, 201


async def list_keys(site: Site, caller: Caller) -> dict[str, Any]:
    """List all keys."""
    return {"keys": [_describe(key) for key in await _administered(site, caller).keys.list()]}


def _unknown(id_or_name: str) -> NotFoundError:
    return NotFoundError(f"there is no key {id_or_name[:100]!r}")


async def revoke_key(site: Site, caller: Caller, id_or_name: str) -> dict[str, Any]:
    """Take a key out of service."""
    if await _administered(site, caller).keys.revoke(id_or_name) is None:
        raise _unknown(id_or_name)
    return {"revoked": True, "idOrName": id_or_name}


async def set_quota(site: Site, caller: Caller, id_or_name: str) -> dict[str, Any]:
    """Replace a key's quota."""
    store = _administered(site, caller)
    wanted = decode(await _body(), _quota)
    quota = Quota(wanted.daily, wanted.weekly, wanted.monthly)
    if await store.keys.set_quota(id_or_name, quota) is None:
        raise _unknown(id_or_name)
    return {"ok": True, "idOrName": id_or_name, "quota": asdict(quota)}


async def read_quota(site: Site, caller: Caller, id_or_name: str) -> dict[str, Any]:
    """Tell limits and use of a key."""
    store = _administered(site, caller)
    key = await store.keys.find(id_or_name)
    allowances = await store.quotas.allowances(key.id) if key else None
    if key is None or allowances is None:
        raise _unknown(id_or_name)
    quota = {period: {"limit": each.limit, "used": each.used} for period, each in allowances.items()}
    return {"keyId": key.id, "quota": quota}


def _time(name: str) -> datetime | None:
    text = request.args.get(name)
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(f"{name} has to be a date in ISO 8601 form", param=name) from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


async def usage(site: Site, caller: Caller) -> dict[str, Any]:
    """Report usage: the caller's own, or everybody's to the administrator who asks for ``all``."""
    everybody = request.args.get("all") == "true"
    limit = whole_number("limit", request.args.get("limit", "50"), 0, 10_000)
    hours = whole_number("hours", request.args.get("hours", "0"), 0, MAX_HOURS)
    since, until = _time("since"), _time("until")
    store = _store(site)
    if everybody or caller.key_id is None:
        require_admin(caller)
    if hours and since is None:
        since = datetime.now(UTC) - timedelta(hours=hours)
    key_id = None if everybody else caller.key_id
    report = await store.usage.report(since=since, until=until, limit=limit, key_id=key_id)
    return {
        "byKey": [{"key_name": each.key_name, **_sums(each.totals)} for each in report.by_key],
        "byModel": [{"model": each.model, **_sums(each.totals)} for each in report.by_model],
        "timeline": [{"hour": each.hour.isoformat(), **_sums(each.totals)} for each in report.timeline],
        "recent": [_row(row) for row in report.recent],
        "scope": {"self": caller.name, "all": key_id is None},
    }


async def cache_stats(site: Site) -> dict[str, Any]:
    """Tell what the cache holds."""
    store = _store(site)
    stats = await store.cache.stats()
    return {
        "entries": stats.entries,
        "totalHits": stats.hits,
        "sizeBytes": stats.size_bytes,
        "inflight": store.flights.in_flight,
    }


async def clear_cache(site: Site, caller: Caller) -> dict[str, Any]:
    """Drop all cached answers."""
    if site.settings.auth_mode != "none":
        require_admin(caller)
    return {"cleared": await _store(site).cache.clear()}


def _sums(totals: Totals) -> dict[str, Any]:
    return {
        "requests": totals.requests,
        "successes": totals.successes,
        "errors": totals.errors,
        "cancelled": totals.cancelled,
        "total_prompt_chars": totals.prompt_chars,
        "total_response_chars": totals.response_chars,
        "total_elapsed_ms": totals.total_ms,
        "avg_elapsed_ms": round(totals.avg_total_ms),
        "avg_first_delta_ms": totals.avg_first_delta_ms,
        "tokens_in": totals.tokens_in,
        "tokens_out": totals.tokens_out,
        "cache_read": totals.cache_read,
        "cache_write": totals.cache_write,
        "heartbeats": totals.heartbeats,
        "first_request": totals.first_request and totals.first_request.isoformat(),
        "last_request": totals.last_request and totals.last_request.isoformat(),
    }


def _row(row: UsageRow) -> dict[str, Any]:
    own = {**asdict(row), "created_at": row.created_at.isoformat(), "success": row.outcome == "ok"}
    own["elapsed_ms"] = own.pop("total_ms")
    return own
