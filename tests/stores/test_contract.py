"""Every store of ours passes the suite that we ship for stores of others."""

from __future__ import annotations

import pytest

from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing import RecordStoreContract
from rmem.testing.contract import example


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

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: SqliteRecordStore(tmp_path / "memories.db")


class TestSqliteStoreThroughSegments(RecordStoreContract):
    """The same with every write packed into segments at once."""

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        monkeypatch.setattr(cache, "SEGMENT_FROM", 1)
        monkeypatch.setattr(cache, "SEGMENT_BULK", 1)
        with SqliteRecordStore(tmp_path / "memories.db") as store:
            yield store

    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: SqliteRecordStore(tmp_path / "memories.db")


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

    def filtered_rows(self, where):
        return self._other.filtered_rows(where)

    def get_many(self, keys):
        self.flush()
        return self._other.get_many(keys)

    def close(self):
        self._other.close()
        super().close()


@pytest.mark.parametrize("kind", [InMemoryRecordStore, SqliteRecordStore])
def test_a_move_to_another_tier_changes_no_order(kind, tmp_path):
    with kind() if kind is InMemoryRecordStore else kind(tmp_path / "memories.db") as store:
        given = [example(f"step {number}", step_number=7, timestamp=1_700_000_000.0 + number) for number in range(4)]
        keys = [memory.memory_id for memory in store.put(given)]
        store.move(keys[:2], "ltm")
        store.move(keys[1:2], "stm")
        assert [memory.memory_id for memory in store.select(order="step")] == keys
        assert [memory.tier for memory in store.select(order="step")] == ["ltm", "stm", "stm", "stm"]
