"""The CLI's version and login are known without asking upstream, and looked at again from time to time."""

import logging
import os
from itertools import chain, repeat
from pathlib import Path

import fake_program
import pytest
import trio
from fake_backend import ask, open_fake
from fake_script import api_error
from trio.testing import MockClock

from ocp_trio.backend_state import LoginOutcome
from ocp_trio.claude import program
from ocp_trio.claude.program import Program, read_login, watch_program

LIMIT = 20


def shell(folder: Path, script: str) -> str:
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


async def look(binary: str, **environment: str) -> LoginOutcome:
    with trio.fail_after(LIMIT):
        return await read_login(binary, {"PATH": os.defpath, "HOME": "/nonexistent", **environment})


async def test_a_login_is_seen_and_so_is_none(tmp_path: Path) -> None:
    binary = str(fake_program.install(tmp_path))

    assert await look(binary, CLAUDE_CODE_OAUTH_TOKEN="made-up") == "ok"
    assert await look(binary) == "logged_out"


@pytest.mark.parametrize("script", ["exit 1", "echo hello", "echo '[]'", 'echo \'{"loggedIn": "yes"}\'', "exec yes"])
async def test_what_makes_no_sense_is_no_verdict(tmp_path: Path, script: str) -> None:
    assert await look(shell(tmp_path, script)) == "unknown"


async def test_a_program_that_hangs_is_ended_and_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PATIENCE", 0.05)

    assert await look(shell(tmp_path, "exec sleep 60")) == "timeout"


async def test_it_is_asked_in_an_empty_folder(tmp_path: Path) -> None:
    binary = shell(tmp_path, f"pwd > {tmp_path}/where; ls -A | wc -l >> {tmp_path}/where; echo '{{\"loggedIn\":true}}'")

    assert await look(binary) == "ok"
    where, entries = (tmp_path / "where").read_text().split()
    assert entries == "0"
    assert not await trio.Path(where).exists()


async def test_a_login_is_looked_at_every_ten_minutes_and_a_missing_one_sooner_with_growing_pauses(
    autojump_clock: MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[LoginOutcome] = ["ok", "logged_out", "timeout", "unknown", "ok"]
    outcomes = chain(first, repeat(first[1]))
    looks = []

    async def scripted(*_: object) -> LoginOutcome:
        looks.append(round(trio.current_time() - began))
        return next(outcomes)

    async def version(*_: object) -> tuple[int, int, int]:
        return (2, 1, 332)

    monkeypatch.setattr(program, "read_login", scripted)
    monkeypatch.setattr(program, "read_version", version)
    began = trio.current_time()
    nursery.start_soon(watch_program, "/any", {}, Program())
    await trio.sleep(3500)
    nursery.cancel_scope.cancel()

    assert looks == [0, 600, 610, 630, 670, 1270, 1280, 1300, 1340, 1420, 1580, 1900, 2500, 3100]


def test_what_cannot_tell_does_not_change_what_is_known() -> None:
    known = Program()

    known.note_login("ok", "auth_status")
    known.note_login("timeout", "auth_status")
    uncertain = known.login
    known.note_login("refused", "request")
    refused = known.login
    known.note_login("ok", "request")

    assert (uncertain.ok, uncertain.outcome, uncertain.failures) == (True, "timeout", 1)
    assert (refused.ok, refused.ok_source, refused.outcome, refused.failures) == (False, "auth_status", "refused", 2)
    assert (known.login.ok, known.login.ok_source, known.login.failures) == (True, "request", 0)
    assert known.login.ok_at == known.login.checked_at


def test_the_log_tells_of_changes_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    known = Program()

    for version in (None, None, (2, 1, 332), (2, 1, 332), (1, 0, 0)):
        known.note_version(version)
    for outcome in ("ok", "ok", "logged_out", "logged_out", "ok"):
        known.note_login(outcome, "auth_status")

    assert [record.message for record in caplog.records] == [
        "claude_version_unknown", "claude_found", "claude_old", "login_not_ok", "login_ok"
    ]  # fmt: skip


async def test_an_answer_proves_a_login_and_a_refused_credential_disproves_it(tmp_path: Path) -> None:
    async with open_fake(tmp_path) as fake:
        before = fake.backend.state.login
        await ask(fake)
        answered = fake.backend.state.login
        await ask(fake, api_error("no", error="authentication_failed", status=401))
        refused = fake.backend.state.login

    assert before is not None
    assert answered is not None
    assert refused is not None
    assert (before.ok, answered.ok, answered.ok_source) == (None, True, "request")
    assert (refused.ok, refused.outcome) == (False, "refused")
