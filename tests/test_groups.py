"""A lone error leaves a nursery as itself."""

import pytest
import trio

from ocp_trio.streaming.groups import lone_error, unwrap_lone_error

FIRST, SECOND = ValueError("first"), KeyError("second")


@pytest.mark.parametrize(
    "group", [ExceptionGroup("", [FIRST]), ExceptionGroup("", [ExceptionGroup("", [ExceptionGroup("", [FIRST])])])]
)
def test_the_only_error_of_a_group_is_found_however_deep(group: ExceptionGroup[Exception]) -> None:
    assert lone_error(group) is FIRST


@pytest.mark.parametrize(
    "group", [ExceptionGroup("", [FIRST, SECOND]), ExceptionGroup("", [ExceptionGroup("", [FIRST, SECOND])])]
)
def test_a_group_of_several_stays_as_it_is(group: ExceptionGroup[Exception]) -> None:
    assert lone_error(group) is group
    with pytest.raises(ExceptionGroup) as caught, unwrap_lone_error():
        raise group
    assert caught.value is group


async def test_the_error_of_a_nursery_keeps_its_cause_and_loses_the_group() -> None:
    async def fail() -> None:
        raise FIRST from SECOND

    with pytest.raises(ValueError, match="first") as caught, unwrap_lone_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    assert caught.value is FIRST
    assert caught.value.__cause__ is SECOND
    assert caught.value.__suppress_context__


def test_other_errors_and_none_pass_unchanged() -> None:
    with unwrap_lone_error():
        pass
    with pytest.raises(ValueError, match="first") as caught, unwrap_lone_error():
        raise FIRST
    assert caught.value is FIRST
