"""What the CLI tells of a subscription's limits is remembered, as far as it makes sense."""

from pathlib import Path

import captures
import pytest
from fake_backend import ask, open_fake
from fake_script import rate_limit, success

from ocp_trio.backend_state import PlanWindow
from ocp_trio.claude.lines import RateLimitEvent, RateLimitInfo, RateLimitWindow
from ocp_trio.claude.plan import learned
from ocp_trio.claude.stream_json import StreamJsonDecoder


def told(capture: str) -> list[RateLimitInfo]:
    lines = StreamJsonDecoder(2**20).feed(captures.stdout(capture))
    return [each.rate_limit_info for each in lines if isinstance(each, RateLimitEvent)]


def test_a_warning_tells_how_much_is_used() -> None:
    plan = learned(None, told("12-made-up-oauth-ratelimit-warning"))

    assert plan is not None
    assert plan.windows == {"five_hour": PlanWindow("allowed_warning", 0.91, 1_800_000_000)}
    assert plan.overage == "not in use"


def test_a_rejection_tells_when_it_ends() -> None:
    plan = learned(None, told("12-made-up-oauth-ratelimit-rejected"))

    assert plan is not None
    assert plan.windows == {"five_hour": PlanWindow("rejected", None, 1_800_000_000)}


def test_what_is_not_mentioned_again_stays_and_nothing_told_is_nothing_known() -> None:
    week = RateLimitInfo(unifiedWindows={"seven_day": RateLimitWindow("allowed", 0.2, 5.0)}, isUsingOverage=True)
    session = RateLimitInfo(rateLimitType="five_hour", status="allowed")

    plan = learned(None, [week, session])

    assert plan is not None
    assert set(plan.windows) == {"seven_day", "five_hour"}
    assert plan.overage == "in use"
    assert learned(plan, []) is plan
    assert learned(None, []) is None


@pytest.mark.parametrize("resets_at", [-1.0, 1e300, 253_402_300_800.0])
def test_a_time_that_is_none_is_not_known(resets_at: float) -> None:
    plan = learned(None, [RateLimitInfo(rateLimitType="x", resetsAt=resets_at)])

    assert plan is not None
    assert plan.windows == {"x": PlanWindow()}


def test_a_child_that_makes_up_names_fills_no_memory() -> None:
    many = {f"{number}" * 1000: RateLimitWindow() for number in range(100)}

    plan = learned(None, [RateLimitInfo(unifiedWindows=many)])

    assert plan is not None
    assert len(plan.windows) == 20
    assert max(map(len, plan.windows)) == 64


async def test_a_backend_knows_what_its_children_were_told(tmp_path: Path) -> None:
    async with open_fake(tmp_path, grace_period=0.5) as fake:
        before = fake.backend.state.plan
        await ask(fake, rate_limit("allowed_warning", rateLimitType="seven_day", utilization=0.5), success())

    assert before is None
    assert fake.backend.state.plan is not None
    assert fake.backend.state.plan.windows["seven_day"].utilization == 0.5
