"""Every store of ours passes the suite that we ship for stores of others."""

from __future__ import annotations

import pytest

from remanence.stores.memory import InMemoryRecordStore
from remanence.stores.sql import cache
from remanence.stores.sql.sqlite import SqliteRecordStore
from remanence.testing import RecordStoreContract


class TestInMemoryStore(RecordStoreContract):
    @pytest.fixture
    def store(self):
        with InMemoryRecordStore() as store:
            yield store


class TestSqliteStore(RecordStoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with SqliteRecordStore(tmp_path / "memories.db") as store:
            yield store


class TestSqliteStoreThroughSegments(RecordStoreContract):
    """The same with every write packed into segments at once."""

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cache, "SETTLE_FROM", 1)
        monkeypatch.setattr(cache, "SETTLE_BULK", 1)
        with SqliteRecordStore(tmp_path / "memories.db") as store:
            yield store


class TestSqliteStoreSeenByAnother(RecordStoreContract):
    """Every read goes through a second store on the same file, as another process would read it."""

    @pytest.fixture
    def store(self, tmp_path):
        with _Pair(tmp_path / "memories.db") as store:
            yield store


class _Pair(SqliteRecordStore):
    def __init__(self, path):
        super().__init__(path)
        self._other = SqliteRecordStore(path)

    def survey(self, where):
        return self._other.survey(where)

    def get_many(self, keys):
        self.flush()
        return self._other.get_many(keys)

    def close(self):
        self._other.close()
        super().close()
