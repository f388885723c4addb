"""Every store of values passes the suite that we ship for stores of others."""

from __future__ import annotations

import pytest

from rmem import InMemoryStore, RedisStore, SqliteStore, VectorMemoryStore
from rmem.kv.base import text_of
from rmem.testing import MemoryStoreContract


class TestInMemoryStore(MemoryStoreContract):
    @pytest.fixture
    def store(self):
        return InMemoryStore()


class TestSqliteStore(MemoryStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with SqliteStore(tmp_path / "values.db") as store:
            yield store

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: SqliteStore(tmp_path / "values.db")


class TestSqliteStoreSeenByAnother(MemoryStoreContract):
    """Reads go through a second store on the same file, as another process would read it."""

    @pytest.fixture
    def store(self, tmp_path):
        class Pair(SqliteStore):
            def __init__(self, path):
                super().__init__(path)
                self.other = SqliteStore(path)

            def search(self, query, top_k=5):
                return self.other.search(query, top_k)

            def get(self, key):
                return self.other.get(key)

            def close(self):
                self.other.close()
                super().close()

        with Pair(tmp_path / "values.db") as store:
            yield store


class TestRedisStore(MemoryStoreContract):
    @pytest.fixture
    def store(self, redis_server):
        with RedisStore(**redis_server.connection()) as store:
            yield store

    @pytest.fixture
    def reopen(self, redis_server):
        return lambda: RedisStore(**redis_server.connection())


class TestRedisStoreWithTtl(MemoryStoreContract):
    @pytest.fixture
    def store(self, redis_server):
        with RedisStore(**redis_server.connection(), default_ttl=60, refresh_on_read=True) as store:
            yield store


class TestRedisStoreOnACluster(MemoryStoreContract):
    @pytest.fixture
    def store(self, redis_cluster):
        with RedisStore(**redis_cluster.connection(), namespace="{odd} name") as store:
            yield store


class TestVectorMemoryStore(MemoryStoreContract):
    by_meaning = True

    @pytest.fixture
    def store(self):
        return VectorMemoryStore()


class _OfObjects(MemoryStoreContract):
    """The same with JSON objects instead of texts."""

    def value(self, text):
        return {"said": text, "by": ["somebody", 1]}

    def text_of(self, value):
        assert value["by"] == ["somebody", 1]
        return value["said"]


class TestInMemoryStoreOfObjects(_OfObjects):
    @pytest.fixture
    def store(self):
        return InMemoryStore()


class TestSqliteStoreOfObjects(_OfObjects):
    @pytest.fixture
    def store(self, tmp_path):
        with SqliteStore(tmp_path / "values.db") as store:
            yield store


class TestRedisStoreOfObjects(_OfObjects):
    @pytest.fixture
    def store(self, redis_server):
        with RedisStore(**redis_server.connection()) as store:
            yield store


class TestVectorMemoryStoreOfObjects(_OfObjects):
    by_meaning = True

    @pytest.fixture
    def store(self):
        return VectorMemoryStore()

    def test_texts_are_what_is_compared(self, store):
        store.add("k", self.value("a red boat"))
        assert store.texts == [text_of(self.value("a red boat"))]
