"""A setting names a store, and what is no store is refused without showing a password."""

import subprocess
import sys
from pathlib import Path

import pytest

from ocp_trio.errors import SettingError
from ocp_trio.store import open_store

SECRET = "hunter2"


@pytest.mark.parametrize(
    "where",
    [
        f"mysql://user:{SECRET}@host/db",
        f"http://{SECRET}",
        f"redis://:{SECRET}@host:99999999/",
        f"redis://:{SECRET}@host:port/",
        f"redis://:{SECRET}@[::1",
        f"redis://:{SECRET}@",
        f"redis://:{SECRET}@host?stream_timeout=soon",
    ],
)
async def test_an_address_of_no_store_is_refused_without_its_password(where: str) -> None:
    with pytest.raises(SettingError) as refused:
        async with open_store(where):
            pass

    assert refused.value.name == "OCP_STORE"
    assert SECRET not in f"{refused.value!r} {refused.value.value}"


async def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async with open_store("~/folder/store.db") as store:
        await store.ping()

    assert (tmp_path / "folder" / "store.db").exists()


async def test_what_is_never_asked_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async with open_store(path), open_store("redis://127.0.0.1:1"):
        pass

    assert not path.exists()


def test_sqlite_does_without_the_client_of_redis() -> None:
    script = "import sys; import ocp_trio.store; sys.exit('coredis' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


async def test_an_error_of_the_block_passes_as_it_is(tmp_path: Path) -> None:
    for where in (tmp_path / "store.db", "redis://127.0.0.1:1"):
        with pytest.raises(ZeroDivisionError):
            async with open_store(where):
                raise ZeroDivisionError
