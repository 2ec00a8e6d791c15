"""The log is one JSON object per line, and a ring of the newest."""

import json
import logging

import pytest

from ocp_trio.logs import LogRing, open_logs


def test_an_entry_is_its_event_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    ring = LogRing()

    with open_logs(ring):
        logging.getLogger("ocp_trio.web").info("heartbeat_active", extra={"session": None, "intervalMs": 100})

    line = json.loads(capsys.readouterr().err)
    assert ring.newest(10) == [line]
    assert list(line) == ["ts", "level", "event", "session", "intervalMs"]
    assert line["ts"].endswith("Z")
    assert (line["level"], line["event"], line["session"], line["intervalMs"]) == (
        "info",
        "heartbeat_active",
        None,
        100,
    )


def test_the_ring_keeps_the_newest_and_finds_them_by_level_and_event() -> None:
    ring = LogRing(capacity=3)
    logger = logging.getLogger("ocp_trio.any")

    with open_logs(ring):
        logger.info("one")
        logger.info("two")
        logger.warning("three")
        logger.info("two")

    assert [entry["event"] for entry in ring.newest(10)] == ["two", "three", "two"]
    assert [entry["event"] for entry in ring.newest(2)] == ["three", "two"]
    assert [entry["event"] for entry in ring.newest(10, level="warning")] == ["three"]
    assert len(ring.newest(10, event="two")) == 2
    assert ring.newest(0) == []


def test_what_comes_after_a_cursor_is_told_once_and_what_was_dropped_meanwhile_is_counted() -> None:
    ring = LogRing(capacity=3)
    logger = logging.getLogger("ocp_trio.any")

    with open_logs(ring):
        logger.info("one")
        logger.info("two")
        first = ring.read(1)
        nothing = ring.read(10, after=first.cursor)
        logger.info("three")
        logger.warning("four")
        second = ring.read(10, level="warning", after=nothing.cursor)
        for _ in range(5):
            logger.info("many")
        third = ring.read(10, after=second.cursor)

    pages = [([entry["event"] for entry in page.entries], page.missed) for page in (first, nothing, second, third)]
    assert pages == [(["two"], 0), ([], 0), (["four"], 0), (["many"] * 3, 2)]


@pytest.mark.parametrize("cursor", ["", "1", "another-run.2", "x.y", ".", "9" * 50])
def test_a_cursor_of_another_run_is_the_beginning(cursor: str) -> None:
    ring = LogRing()

    with open_logs(ring):
        logging.getLogger("ocp_trio.any").info("one")

    assert [entry["event"] for entry in ring.read(10, after=cursor).entries] == ["one"]
    assert ring.read(10, after=cursor).missed == 0


def test_an_empty_ring_has_a_cursor_too() -> None:
    ring = LogRing()
    before = ring.read(10)

    with open_logs(ring):
        logging.getLogger("ocp_trio.any").info("one")

    assert before.entries == []
    assert [entry["event"] for entry in ring.read(10, after=before.cursor).entries] == ["one"]


def test_a_traceback_goes_to_stderr_and_not_into_the_ring(capsys: pytest.CaptureFixture[str]) -> None:
    ring = LogRing()

    with open_logs(ring):
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            logging.getLogger("ocp_trio.web").exception("internal_error")

    assert "ZeroDivisionError" in json.loads(capsys.readouterr().err)["traceback"]
    assert "ZeroDivisionError" not in json.dumps(ring.newest(1))


def test_after_the_block_nothing_is_left_of_it() -> None:
    logger = logging.getLogger("ocp_trio")
    before = (list(logger.handlers), logger.level, logger.propagate)

    with open_logs(LogRing()):
        assert len(logger.handlers) == len(before[0]) + 2

    assert (list(logger.handlers), logger.level, logger.propagate) == before
