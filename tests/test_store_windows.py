"""A quota's windows are calendar days, ISO weeks and months of UTC, and a refusal tells when to come again."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from ocp_trio.store import PERIODS, Period, Quota, Refusal
from ocp_trio.store.windows import allowances, refusal, window_at, windows_at

MOMENTS = st.datetimes(
    datetime(1971, 1, 1),
    datetime(9000, 1, 1),
    timezones=st.just(UTC),
)
PERIOD = st.sampled_from(PERIODS)
SMALLEST = timedelta(microseconds=1)


@given(MOMENTS, PERIOD)
def test_every_moment_lies_in_its_window(now: datetime, period: Period) -> None:
    window = window_at(period, now)

    assert window.start <= now < window.end


@given(MOMENTS, PERIOD)
def test_windows_follow_each_other_without_gap_or_overlap(now: datetime, period: Period) -> None:
    window = window_at(period, now)

    assert window_at(period, window.start) == window_at(period, window.end - SMALLEST) == window
    assert window_at(period, window.end).start == window.end
    assert window_at(period, window.start - SMALLEST).end == window.start


@given(MOMENTS, MOMENTS)
def test_two_moments_share_a_window_where_the_calendar_says_so(one: datetime, other: datetime) -> None:
    assert (window_at("daily", one) == window_at("daily", other)) == (one.date() == other.date())
    assert (window_at("weekly", one) == window_at("weekly", other)) == (
        one.isocalendar()[:2] == other.isocalendar()[:2]
    )
    assert (window_at("monthly", one) == window_at("monthly", other)) == (one.timetuple()[:2] == other.timetuple()[:2])


@given(MOMENTS, MOMENTS, PERIOD)
def test_windows_of_one_period_have_names_of_their_own(one: datetime, other: datetime, period: Period) -> None:
    windows = window_at(period, one), window_at(period, other)

    assert (windows[0].name == windows[1].name) == (windows[0] == windows[1])


@given(MOMENTS, st.integers(-14 * 60, 14 * 60), PERIOD)
def test_the_zone_of_a_time_does_not_matter(now: datetime, minutes: int, period: Period) -> None:
    elsewhere = now.astimezone(timezone(timedelta(minutes=minutes)))

    assert window_at(period, elsewhere) == window_at(period, now)


def test_a_day_in_the_middle_of_the_week_between_two_years() -> None:
    now = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)

    spans = {period: (str(window.start.date()), str(window.end.date())) for period, window in windows_at(now).items()}

    assert spans == {
        "daily": ("2026-12-31", "2027-01-01"),
        "weekly": ("2026-12-28", "2027-01-04"),
        "monthly": ("2026-12-01", "2027-01-01"),
    }


LIMITS = st.none() | st.integers(0, 5)
COUNTS = st.integers(0, 6)


@given(MOMENTS, st.tuples(LIMITS, LIMITS, LIMITS), st.tuples(COUNTS, COUNTS, COUNTS))
def test_a_request_is_refused_exactly_where_a_limit_is_reached(
    now: datetime, limits: tuple[int | None, ...], counts: tuple[int, ...]
) -> None:
    used = dict(zip(PERIODS, counts, strict=True))

    refused = refusal(Quota(*limits), used, now)

    spent = {
        period for period, limit in zip(PERIODS, limits, strict=True) if limit is not None and used[period] >= limit
    }
    assert (refused is None) == (not spent)
    if refused is not None:
        ends = {period: (window_at(period, now).end - now).total_seconds() for period in spent}
        assert refused.period in spent
        assert refused == Refusal(
            refused.period, Quota(*limits).limit(refused.period) or 0, used[refused.period], max(ends.values())
        )


def test_what_is_left_of_each_window_is_told_in_seconds() -> None:
    now = datetime(2026, 11, 18, 23, 59, 58, tzinfo=UTC)

    told = allowances(Quota(daily=3), {"daily": 2, "weekly": 4, "monthly": 9}, now)

    assert [(name, each.limit, each.used, each.resets_in) for name, each in told.items()] == [
        ("daily", 3, 2, 2.0),
        ("weekly", None, 4, 2.0 + 4 * 86400),
        ("monthly", None, 9, 2.0 + 12 * 86400),
    ]
