"""A quota is exact, however many ask at once and over however many instances."""

from collections import Counter
from datetime import UTC, datetime

import pytest
import trio
from store_engines import Clock, Engine

from ocp_trio.errors import InvalidApiKeyError
from ocp_trio.store import Allowance, Charge, Quota, Refusal, Store, open_store

pytest_plugins = ["store_fixtures"]


async def used(store: Store, key_id: str) -> tuple[int, ...]:
    told = await store.quotas.allowances(key_id)
    assert told is not None
    return tuple(each.used for each in told.values())


async def test_each_request_counts_in_all_windows(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        key = (await store.keys.create("anna", Quota(daily=5))).key

        verdicts = [await store.quotas.charge(key.id) for _ in range(2)]
        told = await store.quotas.allowances(key.id)

    assert verdicts == [Charge(key.id, clock.time)] * 2
    assert told == {
        "daily": Allowance(5, 2, 12 * 3600),
        "weekly": Allowance(None, 2, 4.5 * 86400),
        "monthly": Allowance(None, 2, 12.5 * 86400),
    }


async def test_a_request_over_the_quota_is_refused_and_counts_in_no_window(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        key = (await store.keys.create("anna", Quota(daily=1, monthly=9))).key
        await store.quotas.charge(key.id)

        refused = [await store.quotas.charge(key.id) for _ in range(3)]

        assert refused == [Refusal("daily", 1, 1, 12 * 3600)] * 3
        assert await used(store, key.id) == (1, 1, 1)


async def test_of_several_spent_windows_the_longest_wait_is_told(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        key = (await store.keys.create("anna", Quota(0, 0, 0))).key

        assert await store.quotas.charge(key.id) == Refusal("monthly", 0, 0, 12.5 * 86400)


async def test_fifty_requests_at_once_over_two_instances_get_exactly_what_is_left(engine: Engine) -> None:
    async with open_store(engine.where) as one, open_store(engine.where) as other:
        key = (await one.keys.create("anna", Quota(daily=30))).key
        verdicts: list[object] = []

        async def ask(store: Store) -> None:
            verdicts.append(type(await store.quotas.charge(key.id)))

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(ask, (one, other)[number % 2])

        assert Counter(verdicts) == {Charge: 30, Refusal: 20}
        assert await used(other, key.id) == (30, 30, 30)


async def test_a_refund_gives_the_request_back(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        key = (await store.keys.create("anna", Quota(weekly=1))).key
        charge = await store.quotas.charge(key.id)
        assert isinstance(charge, Charge)

        await store.quotas.refund(charge)

        assert await used(store, key.id) == (0, 0, 0)
        assert isinstance(await store.quotas.charge(key.id), Charge)


async def test_a_refund_goes_to_the_windows_that_were_charged(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        key = (await store.keys.create("anna")).key
        charge = await store.quotas.charge(key.id)
        assert isinstance(charge, Charge)
        clock.advance(days=1)
        await store.quotas.charge(key.id)

        await store.quotas.refund(charge)

        assert await used(store, key.id) == (1, 1, 1)


async def test_refunds_and_charges_at_once_add_up(engine: Engine) -> None:
    async with open_store(engine.where) as one, open_store(engine.where) as other:
        key = (await one.keys.create("anna")).key

        async def fail(store: Store) -> None:
            charge = await store.quotas.charge(key.id)
            assert isinstance(charge, Charge)
            await store.quotas.refund(charge)

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(fail, (one, other)[number % 2])
                    nursery.start_soon(one.quotas.charge, key.id)

        assert await used(one, key.id) == (20, 20, 20)


@pytest.mark.parametrize(
    ("quota", "then"),
    [
        (Quota(daily=1), datetime(2026, 12, 1, 0, 0, tzinfo=UTC)),
        (Quota(weekly=1), datetime(2026, 12, 7, 0, 0, tzinfo=UTC)),
        (Quota(monthly=1), datetime(2026, 12, 1, 0, 0, tzinfo=UTC)),
    ],
)
async def test_a_new_window_begins_with_nothing_used(engine: Engine, quota: Quota, then: datetime) -> None:
    clock = Clock(datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC))
    async with open_store(engine.where, now=clock) as store:
        key = (await store.keys.create("anna", quota)).key
        verdicts = [type(await store.quotas.charge(key.id)) for _ in range(2)]

        clock.time = then
        verdicts += [type(await store.quotas.charge(key.id)) for _ in range(2)]

    assert verdicts == [Charge, Refusal, Charge, Refusal]


async def test_a_lower_quota_holds_at_once_for_what_was_used_before(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        key = (await store.keys.create("anna")).key
        for _ in range(3):
            await store.quotas.charge(key.id)

        await store.keys.set_quota("anna", Quota(daily=2))
        refused = await store.quotas.charge(key.id)

    assert isinstance(refused, Refusal)
    assert (refused.limit, refused.used) == (2, 3)


async def test_keys_do_not_share_their_counts(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        anna, bert = [(await store.keys.create(name, Quota(daily=1))).key for name in ("anna", "bert")]

        verdicts = [type(await store.quotas.charge(key.id)) for key in (anna, bert, anna, bert)]

    assert verdicts == [Charge, Charge, Refusal, Refusal]


async def test_a_revoked_key_is_charged_nothing(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        key = (await store.keys.create("anna")).key
        await store.keys.revoke("anna")

        for key_id in (key.id, "key_0", "anna"):
            with pytest.raises(InvalidApiKeyError):
                await store.quotas.charge(key_id)
        assert await used(store, key.id) == (0, 0, 0)
        assert await store.quotas.allowances("key_0") is None


async def test_whoever_is_cancelled_during_a_charge_still_knows_what_to_refund(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        key = (await store.keys.create("anna")).key
        refunded = 0

        async def leave() -> None:
            nonlocal refunded
            charge = await store.quotas.charge(key.id)
            assert isinstance(charge, Charge)
            try:
                await trio.sleep_forever()
            finally:
                await store.quotas.refund(charge)
                refunded += 1

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(leave)
                await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()

        assert refunded == 10
        assert await used(store, key.id) == (0, 0, 0)
