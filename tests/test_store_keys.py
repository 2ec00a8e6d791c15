"""Keys are shown once, found by their hash, named by any text, and out of service for good once revoked."""

import logging
import re

import pytest
from store_engines import Clock, Engine

from ocp_trio.errors import InvalidRequestError
from ocp_trio.store import ApiKey, Quota, open_store
from ocp_trio.store.key_secrets import hash_secret, preview

pytest_plugins = ["store_fixtures"]

NAMES = ["anna", "<img src=x onerror=1>", "渐 😀", "a b\tc\n", "key_1", "'; DROP TABLE api_keys; --", "x" * 200, "%zz"]


async def test_a_new_key_is_random_and_long(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        secrets = {(await store.keys.create(f"key {number}")).secret for number in range(20)}

    assert len(secrets) == 20
    assert all(re.fullmatch(r"ocp_[A-Za-z0-9_-]{43}", secret) for secret in secrets)


async def test_a_key_is_found_by_its_secret_and_by_nothing_else(engine: Engine, clock: Clock) -> None:
    async with open_store(engine.where, now=clock) as store:
        new = await store.keys.create("anna", Quota(daily=5))

        found = await store.keys.authenticate(new.secret)
        others = [
            new.secret[:-1],
            new.secret + "x",
            new.secret.upper(),
            "",
            "anna",
            new.key.id,
            hash_secret(new.secret),
        ]
        none = [await store.keys.authenticate(text) for text in [*others, "\ud83d", "\0"]]

    assert found == new.key
    assert found == ApiKey(new.key.id, preview(new.secret), "anna", clock.time, revoked=False, quota=Quota(daily=5))
    assert none == [None] * 9


@pytest.mark.parametrize("name", NAMES)
async def test_any_text_is_a_name(engine: Engine, name: str) -> None:
    async with open_store(engine.where) as store:
        new = await store.keys.create(name)

        by_name, by_id = await store.keys.find(name), await store.keys.find(new.key.id)

    assert by_name == by_id == new.key
    assert new.key.name == name


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "half \ud83d"])
async def test_what_cannot_be_a_name_is_refused(engine: Engine, name: str) -> None:
    async with open_store(engine.where) as store:
        with pytest.raises(InvalidRequestError) as refused:
            await store.keys.create(name)
        assert await store.keys.list() == []

    assert refused.value.param == "name"


async def test_no_two_keys_in_service_have_one_name(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        first = await store.keys.create("anna")

        for name in ("anna", first.key.id):
            with pytest.raises(InvalidRequestError, match="another key has this name"):
                await store.keys.create(name)
        assert await store.keys.list() == [first.key]


async def test_the_name_of_a_revoked_key_may_be_given_again(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        first = await store.keys.create("anna")
        await store.keys.revoke("anna")
        second = await store.keys.create("anna")

        found = await store.keys.find("anna")
        keys = [(key.id, key.revoked) for key in await store.keys.list()]

    assert found == second.key
    assert keys == [(first.key.id, True), (second.key.id, False)]


async def test_a_revoked_key_opens_nothing(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        new = await store.keys.create("anna")

        revoked = [await store.keys.revoke(new.key.id), await store.keys.revoke("anna")]
        found = await store.keys.authenticate(new.secret)

    assert [key and (key.id, key.revoked) for key in revoked] == [(new.key.id, True)] * 2
    assert found is None


async def test_a_quota_is_replaced_as_a_whole(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        new = await store.keys.create("anna", Quota(1, 2, 3))

        changed = await store.keys.set_quota("anna", Quota(weekly=2**53))

        assert changed is not None
        assert changed.quota == Quota(None, 2**53, None)
        assert await store.keys.authenticate(new.secret) == changed


@pytest.mark.parametrize("limit", [-1, 2**53 + 1, True, 1.5, "1"])
def test_what_is_no_number_of_requests_is_no_quota(limit: int) -> None:
    with pytest.raises(InvalidRequestError, match="monthly must be a whole number") as refused:
        Quota(monthly=limit)

    assert refused.value.param == "monthly"


@pytest.mark.parametrize("text", ["nobody", "", "half \ud83d", "x" * 10_000, "\0", "*", "ocp:keys"])
async def test_nobody_is_found_under_a_text_that_names_nobody(engine: Engine, text: str) -> None:
    async with open_store(engine.where) as store:
        await store.keys.create("anna")

        assert await store.keys.find(text) is None
        assert await store.keys.revoke(text) is None
        assert await store.keys.set_quota(text, Quota()) is None


async def test_keys_outlive_the_process_that_made_them(engine: Engine) -> None:
    async with open_store(engine.where) as store:
        new = await store.keys.create("anna", Quota(1, None, 3))

    async with open_store(engine.where) as store:
        assert await store.keys.list() == [new.key]
        assert await store.keys.authenticate(new.secret) == new.key


async def test_two_instances_know_the_same_keys(engine: Engine) -> None:
    async with open_store(engine.where) as one, open_store(engine.where) as other:
        new = await one.keys.create("anna")
        found = await other.keys.authenticate(new.secret)
        await other.keys.revoke("anna")

        assert found == new.key
        assert await one.keys.authenticate(new.secret) is None


async def test_a_secret_is_neither_stored_nor_logged_nor_shown(
    engine: Engine, caplog: pytest.LogCaptureFixture, tmp_path: object
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_store(engine.where) as store:
        new = await store.keys.create("anna")
        with engine.outage():
            outcomes = []
            for call in (store.keys.authenticate, store.keys.find):
                try:
                    outcomes.append(repr(await call(new.secret)))
                except Exception as error:  # noqa: BLE001 (whatever it is, it does not show the secret)
                    outcomes.append(f"{error!r} {error.__cause__!r}")

    shown = [repr(new), str(new), repr(new.key), repr(store), caplog.text, *outcomes]
    assert not any(new.secret in text or new.secret[8:-4] in text for text in shown)
