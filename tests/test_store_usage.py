"""Every request has one row, and all reports are sums of the same rows."""

from datetime import UTC, datetime, timedelta

import trio
from hypothesis import given
from hypothesis import strategies as st
from store_engines import NOON, Clock, Engine, row

from ocp_trio.store import UsageReport, UsageRow, open_store
from ocp_trio.store.reports import add_row, report_of
from ocp_trio.store.rows import from_values, to_values

pytest_plugins = ["store_fixtures"]

FULL = UsageRow(
    request_id="req-1",
    created_at=NOON + timedelta(milliseconds=1),
    key_id="key_1",
    key_name="<img src=x onerror=1>",
    model="claude-sonnet-4-6",
    backend="claude",
    outcome="ok",
    tokens_in=3,
    tokens_out=5,
    cache_read=1000,
    cache_write=200,
    cost_usd=0.0125,
    queue_wait_ms=7,
    first_delta_ms=350,
    total_ms=2100,
    heartbeats=4,
    prompt_chars=11,
    response_chars=13,
)


async def test_a_row_comes_back_as_it_was_recorded(engine: Engine, clock: Clock) -> None:
    empty = row("req-2", NOON, key_id=None, key_name=None, outcome="cancelled")
    async with open_store(engine.where, now=clock) as store:
        for each in (FULL, empty):
            await store.usage.record(each)

        report = await store.usage.report()

    assert report.recent == [FULL, empty]


async def test_requests_are_added_up_by_key_by_model_and_by_hour(engine: Engine, clock: Clock) -> None:
    rows = [
        FULL,
        row("2", NOON + timedelta(minutes=59), model="opus", outcome="cancelled", total_ms=900),
        row("3", NOON + timedelta(minutes=60), outcome="stalled", key_name=None, key_id=None, cost_usd=0.5),
        row("4", NOON + timedelta(hours=3), key_name="bert", tokens_in=10, first_delta_ms=50, total_ms=100),
    ]
    async with open_store(engine.where, now=clock) as store:
        for each in rows:
            await store.usage.record(each)

        report = await store.usage.report()

    assert [(each.key_name, each.totals.requests) for each in report.by_key] == [
        (None, 1),
        ("<img src=x onerror=1>", 1),
        ("anna", 1),
        ("bert", 1),
    ]
    assert [(each.model, each.totals.requests) for each in report.by_model] == [
        ("sonnet", 2),
        ("claude-sonnet-4-6", 1),
        ("opus", 1),
    ]
    assert [(each.hour.hour, each.totals.requests) for each in report.timeline] == [(12, 2), (13, 1), (15, 1)]
    assert [(each.hour.hour, each.key_name, each.model) for each in report.series] == [
        (12, "<img src=x onerror=1>", "claude-sonnet-4-6"),
        (12, "anna", "opus"),
        (13, None, "sonnet"),
        (15, "bert", "sonnet"),
    ]
    sonnet = report.by_model[0].totals
    assert (sonnet.requests, sonnet.successes, sonnet.errors, sonnet.cancelled) == (2, 1, 1, 0)
    assert (sonnet.tokens_in, sonnet.cost_usd, sonnet.costed, sonnet.answered) == (10, 0.5, 1, 1)
    assert (sonnet.avg_first_delta_ms, sonnet.avg_total_ms, sonnet.max_total_ms) == (50.0, 50.0, 100)
    assert (sonnet.first_request, sonnet.last_request) == (rows[2].created_at, rows[3].created_at)


async def test_a_span_begins_with_its_first_moment_and_ends_before_its_last(engine: Engine, clock: Clock) -> None:
    times = [NOON + timedelta(milliseconds=number) for number in range(5)]
    async with open_store(engine.where, now=clock) as store:
        for number, time in enumerate(times):
            await store.usage.record(row(str(number), time))

        report = await store.usage.report(since=times[1], until=times[4])

    assert [each.request_id for each in report.recent] == ["3", "2", "1"]
    assert report.by_key[0].totals.requests == 3


async def test_one_keys_report_knows_nothing_of_others(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        await store.usage.record(row("1"))
        await store.usage.record(row("2", key_id="key_2", key_name="bert"))
        await store.usage.record(row("3", key_id=None, key_name=None))

        report = await store.usage.report(key_id="key_2")

    assert [each.request_id for each in report.recent] == ["2"]
    assert [each.key_name for each in report.by_key] == ["bert"]
    assert report.timeline[0].totals.requests == 1


async def test_the_newest_rows_are_returned_up_to_a_limit_and_all_are_counted(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        for number in range(5):
            await store.usage.record(row(str(number), NOON + timedelta(seconds=number)))

        reports = [await store.usage.report(limit=limit) for limit in (2, 0, -1, 10**30)]

    assert [[each.request_id for each in report.recent] for report in reports] == [
        ["4", "3"],
        [],
        [],
        ["4", "3", "2", "1", "0"],
    ]
    assert {report.by_key[0].totals.requests for report in reports} == {5}


async def test_a_row_that_is_recorded_again_is_one_row(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        for each in (FULL, FULL, row("other", FULL.created_at)):
            await store.usage.record(each)

        report = await store.usage.report()

    assert sorted(each.request_id for each in report.recent) == ["other", "req-1"]


async def test_many_rows_of_one_moment_are_all_counted(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:

        async def record(number: int) -> None:
            await store.usage.record(row(f"{number:04}", NOON + timedelta(seconds=number // 1100)))

        for hundred in range(0, 1200, 100):
            async with trio.open_nursery() as nursery:
                for number in range(hundred, hundred + 100):
                    nursery.start_soon(record, number)
        report = await store.usage.report(limit=3)

    assert report.by_key[0].totals.requests == 1200
    assert len({each.request_id for each in report.recent}) == 3


async def test_rows_are_dropped_when_they_are_too_old(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock, usage_days=30) as store:
        await store.usage.record(row("old", NOON - timedelta(days=29)))
        clock.advance(days=2)
        await store.usage.record(row("new", clock.time))

        report = await store.usage.report()

    assert [each.request_id for each in report.recent] == ["new"]


async def test_a_row_is_kept_whatever_its_values_are(engine: Engine, clock: Clock) -> None:
    odd = row(
        "\ud83d" + "x" * 1000, model="half \ud83d", tokens_in=10**30, tokens_out=-5, cost_usd=float("nan"), outcome="\0"
    )
    async with open_store(engine.where, now=clock) as store:
        await store.usage.record(odd)

        report = await store.usage.report()

    kept = report.recent[0]
    assert (kept.model, kept.tokens_in, kept.tokens_out, kept.cost_usd) == ("half ?", 2**53, 0, None)
    assert len(kept.request_id) == 500


async def test_an_empty_store_has_an_empty_report(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        report = await store.usage.report(since=datetime.max.replace(tzinfo=UTC))

    assert report == UsageReport([], [], [], [], [])


async def test_the_last_row_of_a_cancelled_request_is_recorded(engine: Engine, clock: Clock) -> None:
    with trio.CancelScope() as scope:
        async with open_store(engine.where, now=clock) as store:
            try:
                scope.cancel()
                await trio.sleep_forever()
            finally:
                await store.usage.record(FULL)

    async with open_store(engine.where, now=clock) as store:
        assert (await store.usage.report()).recent == [FULL]


ROWS = st.builds(
    row,
    request_id=st.uuids().map(str),
    at=st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 3), timezones=st.just(UTC)),
    key_name=st.sampled_from(["anna", "bert", None]),
    model=st.sampled_from(["opus", "sonnet"]),
    outcome=st.sampled_from(["ok", "cancelled", "stalled"]),
    tokens_in=st.integers(0, 1000),
    total_ms=st.integers(0, 1000),
    first_delta_ms=st.none() | st.integers(0, 1000),
)


@given(st.lists(ROWS))
def test_all_ways_of_adding_up_agree(rows: list[UsageRow]) -> None:
    cells: dict[object, object] = {}
    for each in rows:
        add_row(cells, each)  # type: ignore[arg-type]

    report = report_of(cells.items(), [])  # type: ignore[arg-type]

    for parts in (report.by_key, report.by_model, report.timeline, report.series):
        sums = [each.totals for each in parts]
        assert sum(each.requests for each in sums) == len(rows)
        assert sum(each.successes + each.errors + each.cancelled for each in sums) == len(rows)
        assert sum(each.tokens_in for each in sums) == sum(each.tokens_in for each in rows)
        assert max((each.max_total_ms for each in sums), default=0) == max((each.total_ms for each in rows), default=0)


@given(ROWS)
def test_a_row_survives_its_way_into_values_and_back(each: UsageRow) -> None:
    again = from_values(to_values(each))

    assert again.created_at == each.created_at.replace(microsecond=each.created_at.microsecond // 1000 * 1000)
    assert to_values(again) == to_values(each)


def test_a_row_of_another_version_is_read() -> None:
    values = to_values(FULL)

    assert from_values([*values, "a later column"]) == FULL
    assert from_values(values[:7]).tokens_in == 0
