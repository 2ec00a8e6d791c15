"""Run it for others: keys, quotas and usage, in the shapes that users of the Node proxy know."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType
from quart import request

from ocp_trio.errors import InvalidRequestError, NotFoundError
from ocp_trio.openai.decoding import decode
from ocp_trio.store import ApiKey, Quota, SeriesPoint, Store, Totals, UsageRow
from ocp_trio.store.key_secrets import MAX_NAME
from ocp_trio.store.records import MAX_COUNT, Period
from ocp_trio.web.answers import (
    CacheCleared,
    CacheState,
    CreatedKey,
    KeyList,
    KeyQuota,
    KeyRevoked,
    ListedKey,
    PeriodQuota,
    QuotaSet,
    RequestRow,
    SeriesSums,
    Sums,
    UsageReport,
)
from ocp_trio.web.callers import Caller, is_known, require_admin
from ocp_trio.web.queries import UsageQuery, read_query
from ocp_trio.web.site import Site

__all__ = ["cache_stats", "clear_cache", "create_key", "list_keys", "read_quota", "revoke_key", "set_quota", "usage"]

Limit = Annotated[int, Meta(ge=0, le=MAX_COUNT)]


class NewKeyBody(msgspec.Struct, frozen=True):
    """What a new key is called."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class QuotaBody(msgspec.Struct, frozen=True):
    """Requests that a key may make; null is no limit."""

    daily: Limit | None = None
    weekly: Limit | None = None
    monthly: Limit | None = None


_new_key = msgspec.json.Decoder(NewKeyBody)
_quota = msgspec.json.Decoder(QuotaBody)


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


def _describe(key: ApiKey) -> ListedKey:
    return {
        "id": key.id,
        "keyPreview": key.preview,
        "name": key.name,
        "created_at": key.created_at.isoformat(),
        "revoked": key.revoked,
        "quota_daily": key.quota.daily,
        "quota_weekly": key.quota.weekly,
        "quota_monthly": key.quota.monthly,
    }


async def create_key(site: Site, caller: Caller) -> tuple[CreatedKey, int]:
    """Make a key: the only time that its secret is told."""
    made = await _administered(site, caller).keys.create(decode(await _body(), _new_key).name)
    return {"id": made.key.id, "key": made.secret, "name": made.key.name}, 201


async def list_keys(site: Site, caller: Caller) -> KeyList:
    """List all keys."""
    return {"keys": [_describe(key) for key in await _administered(site, caller).keys.list()]}


def _unknown(id_or_name: str) -> NotFoundError:
    return NotFoundError(f"there is no key {id_or_name[:100]!r}")


async def revoke_key(site: Site, caller: Caller, id_or_name: str) -> KeyRevoked:
    """Take a key out of service."""
    revoked = await _administered(site, caller).keys.revoke(id_or_name)
    if revoked is None:
        raise _unknown(id_or_name)
    site.known_keys.forget(revoked.id)
    return {"revoked": True, "idOrName": id_or_name}


async def set_quota(site: Site, caller: Caller, id_or_name: str) -> QuotaSet:
    """Replace a key's quota."""
    store = _administered(site, caller)
    wanted = decode(await _body(), _quota)
    quota = Quota(wanted.daily, wanted.weekly, wanted.monthly)
    if await store.keys.set_quota(id_or_name, quota) is None:
        raise _unknown(id_or_name)
    return {
        "ok": True,
        "idOrName": id_or_name,
        "quota": {"daily": quota.daily, "weekly": quota.weekly, "monthly": quota.monthly},
    }


async def read_quota(site: Site, caller: Caller, id_or_name: str) -> KeyQuota:
    """Tell limits and use of a key."""
    store = _administered(site, caller)
    key = await store.keys.find(id_or_name)
    allowances = await store.quotas.allowances(key.id) if key else None
    if key is None or allowances is None:
        raise _unknown(id_or_name)
    quota: dict[Period, PeriodQuota] = {
        period: {"limit": each.limit, "used": each.used} for period, each in allowances.items()
    }
    return {"keyId": key.id, "quota": quota}


def _time(name: str, text: str | UnsetType) -> datetime | None:
    if text is UNSET:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequestError(f"{name} has to be a date in ISO 8601 form", param=name) from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


async def usage(site: Site, caller: Caller) -> UsageReport:
    """Report usage: the caller's own, or everybody's to the administrator who asks for ``all``.

    Where nobody is asked for a key, whoever is on this machine may see what is used; ``series`` adds up by hour, key
    and model what the others add up by one of them.
    """
    query = read_query(UsageQuery)
    since, until = _time("since", query.since), _time("until", query.until)
    store = _store(site)
    everybody = query.all or caller.key_id is None
    if everybody and not (site.settings.auth_mode == "none" and is_known(caller, site.settings)):
        require_admin(caller)
    if query.hours and since is None:
        since = datetime.now(UTC) - timedelta(hours=query.hours)
    key_id = None if everybody else caller.key_id
    report = await store.usage.report(since=since, until=until, limit=query.limit, key_id=key_id)
    told: UsageReport = {
        "byKey": [{"key_name": each.key_name, **_sums(each.totals)} for each in report.by_key],
        "byModel": [{"model": each.model, **_sums(each.totals)} for each in report.by_model],
        "timeline": [{"hour": each.hour.isoformat(), **_sums(each.totals)} for each in report.timeline],
        "recent": [_row(row) for row in report.recent],
        "scope": {"self": caller.name, "all": key_id is None},
    }
    if query.series:
        told["series"] = [_point(each) for each in report.series]
    return told


async def cache_stats(site: Site) -> CacheState:
    """Tell what the cache holds."""
    store = _store(site)
    stats = await store.cache.stats()
    return {
        "entries": stats.entries,
        "totalHits": stats.hits,
        "sizeBytes": stats.size_bytes,
        "inflight": store.flights.in_flight,
    }


async def clear_cache(site: Site, caller: Caller) -> CacheCleared:
    """Drop all cached answers."""
    if site.settings.auth_mode != "none":
        require_admin(caller)
    return {"cleared": await _store(site).cache.clear()}


def _sums(totals: Totals) -> Sums:
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
        "cost_usd": totals.cost_usd if totals.costed else None,
        "queue_wait_ms": totals.queue_wait_ms,
        "heartbeats": totals.heartbeats,
        "first_request": totals.first_request.isoformat() if totals.first_request else None,
        "last_request": totals.last_request.isoformat() if totals.last_request else None,
    }


def _point(point: SeriesPoint) -> SeriesSums:
    totals = point.totals
    return {
        "hour": point.hour.isoformat(),
        "key_name": point.key_name,
        "model": point.model,
        "requests": totals.requests,
        "tokens_in": totals.tokens_in,
        "tokens_out": totals.tokens_out,
        "cache_read": totals.cache_read,
        "cache_write": totals.cache_write,
    }


def _row(row: UsageRow) -> RequestRow:
    own = {**asdict(row), "created_at": row.created_at.isoformat(), "success": row.outcome == "ok"}
    own["elapsed_ms"] = own.pop("total_ms")
    return cast("RequestRow", own)
