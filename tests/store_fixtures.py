"""Fixtures of the store's tests; a module takes them by ``pytest_plugins = ["store_fixtures"]``."""

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_engines import Clock, Engine, RedisServer, SqliteFile, require_redis


def pytest_configure(config: pytest.Config) -> None:
    """Let pass what coredis 6.9 leaves behind: it does not close the channels of a connection that was refused."""
    config.addinivalue_line("filterwarnings", "ignore:Unclosed <MemoryObject:ResourceWarning")


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(require_redis(), tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()
    # The last look for warnings, at the end of the run, knows nothing of the line above.
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


@pytest.fixture(scope="module", params=["sqlite", "redis"])
def engine_name(request: pytest.FixtureRequest) -> str:
    # Started here, so that the process counts as the module's and not as left behind by a test.
    if request.param == "redis":
        request.getfixturevalue("redis_server")
    name: str = request.param
    return name


@pytest.fixture
def engine(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """An empty store; every test that takes it runs once for each engine."""
    if engine_name == "sqlite":
        return SqliteFile(tmp_path)
    engine: Engine = request.getfixturevalue("redis")
    return engine


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisServer:
    """A Redis without keys."""
    assert redis_server.ask("FLUSHALL") == b"+OK\r\n"
    return redis_server


@pytest.fixture
def mortal_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that a test may kill."""
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(require_redis(), folder)
    yield server
    server.kill()


@pytest.fixture
def clock() -> Clock:
    return Clock()
