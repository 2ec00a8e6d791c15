"""Keep keys, quotas, usage and cached answers, and let equal requests share one run: in SQLite, or in a Redis.

`open_store` yields a `Store`; the protocols of its parts say what holds for both engines. It knows neither web nor
backends. What differs:

======== =========================================== ================================================
part     SQLite                                      Redis, or Valkey
======== =========================================== ================================================
keys,    one file, also for several processes of     all instances share them
quotas   this machine, commands included
usage    the same                                    the same
durable  synced to the disk before a call returns,   as Redis is configured: ``appendonly yes`` survives
         charges with their request's row            its crash, ``appendfsync always`` its machine's
cache    in the memory of this process: answers      all instances share it, within one bound
         never touch the disk
flights  within this process                         over all instances
======== =========================================== ================================================
"""

from ocp_trio.store.flight import FlightLostError
from ocp_trio.store.interface import Cache, Flights, Keys, Producer, Publish, Quotas, Store, Usage
from ocp_trio.store.opening import CACHE_BYTES, TIMEOUT, USAGE_DAYS, open_store
from ocp_trio.store.records import (
    PERIODS,
    Allowance,
    ApiKey,
    CacheStats,
    Charge,
    NewKey,
    Period,
    Quota,
    Refusal,
    UsageRow,
    Verdict,
)
from ocp_trio.store.reports import HourUsage, KeyUsage, ModelUsage, SeriesPoint, Totals, UsageReport
from ocp_trio.store.watch import open_watch

__all__ = [
    "CACHE_BYTES",
    "PERIODS",
    "TIMEOUT",
    "USAGE_DAYS",
    "Allowance",
    "ApiKey",
    "Cache",
    "CacheStats",
    "Charge",
    "FlightLostError",
    "Flights",
    "HourUsage",
    "KeyUsage",
    "Keys",
    "ModelUsage",
    "NewKey",
    "Period",
    "Producer",
    "Publish",
    "Quota",
    "Quotas",
    "Refusal",
    "SeriesPoint",
    "Store",
    "Totals",
    "Usage",
    "UsageReport",
    "UsageRow",
    "Verdict",
    "open_store",
    "open_watch",
]
