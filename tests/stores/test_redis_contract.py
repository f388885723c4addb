"""The Redis store passes the suite of all stores: on a plain server, seen by another process, and on a cluster."""

from __future__ import annotations

import pytest

from rmem.stores.redis import RedisRecordStore
from rmem.testing import RecordStoreContract


class TestRedisStore(RecordStoreContract):
    @pytest.fixture
    def store(self, open_store):
        return open_store()

    @pytest.fixture
    def reopen(self, open_store):
        return open_store


class TestRedisStoreSeenByAnother(RecordStoreContract):
    """Every read goes through a second store, which has to follow the first as another process would."""

    @pytest.fixture
    def store(self, redis_server):
        with _Pair(**redis_server.connection()) as store:
            yield store


class TestRedisStoreOnACluster(RecordStoreContract):
    @pytest.fixture
    def store(self, redis_cluster):
        with RedisRecordStore(**redis_cluster.connection()) as store:
            yield store


class _Pair(RedisRecordStore):
    def __init__(self, **connection):
        super().__init__(**connection)
        self._other = RedisRecordStore(**connection)

    def filtered_rows(self, where):
        return self._other.filtered_rows(where)

    def memories_at(self, seqs):
        return self._other.memories_at(seqs)

    def get_many(self, keys):
        self.flush()
        return self._other.get_many(keys)

    def close(self):
        self._other.close()
        super().close()
