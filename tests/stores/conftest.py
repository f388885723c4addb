"""Redis servers shared by the tests of stores: started once for a test process, empty for every test."""

from __future__ import annotations

import pytest
from redis_cluster import RedisCluster

from rmem.stores.redis import RedisRecordStore
from rmem.testing.redis import RedisServer


@pytest.fixture(scope="session")
def _redis_server():
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def _redis_cluster():
    with RedisCluster() as cluster:
        yield cluster


@pytest.fixture
def redis_server(_redis_server):
    _redis_server.start()
    _redis_server.flush()
    return _redis_server


@pytest.fixture
def redis_cluster(_redis_cluster):
    _redis_cluster.flush()
    return _redis_cluster


@pytest.fixture
def open_store(redis_server):
    """A function that opens a store on the plain server, as a process would; closed at the end."""
    opened = []

    def make(**options):
        store = RedisRecordStore(**redis_server.connection(**options))
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()
