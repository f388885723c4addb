"""What is particular to the embedded store: its schema and history, its pragmas, its handles."""

from __future__ import annotations

import gc
import sqlite3
import threading

import numpy as np
import pytest

from rmem.doctor import examine
from rmem.errors import ConfigError, InputError
from rmem.filters import Filter
from rmem.stores import open_store
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_is_what_was_asked_for(path, durability, level):
    with SqliteRecordStore(path, durability=durability) as store:
        (synchronous,) = store._file.writer.execute("PRAGMA synchronous").fetchone()
        (journal,) = store._file.writer.execute("PRAGMA journal_mode").fetchone()
    assert synchronous == level
    assert journal == "wal"


def test_full_durability_is_the_default(path):
    with SqliteRecordStore(path) as store:
        assert store._file.writer.execute("PRAGMA synchronous").fetchone() == (2,)


def test_one_memory_is_one_row(path):
    with SqliteRecordStore(path) as store:
        store.put([example("a row", memory_id="m", vector=clustered_vectors(1, 16)[0])])
    with sqlite3.connect(path) as plain:
        counts = {
            name: plain.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in ("memories", "access", "segments")
        }
        row = plain.execute("SELECT text, length(vector), length(terms) > 0 FROM memories").fetchone()
    plain.close()
    assert counts == {"memories": 1, "access": 0, "segments": 0}
    assert row == ("a row", 64, 1)


def test_segments_stay_few_however_much_is_written(path, monkeypatch):
    monkeypatch.setattr(cache, "SEGMENT_FROM", 8)
    with SqliteRecordStore(path, durability="normal") as store:
        for n in range(400):
            store.put([example(f"stone {n}", memory_id=f"m{n}")])
        assert 1 <= store.stats().segments <= 10
    with SqliteRecordStore(path) as store:
        assert len(store.match("stone", k=1000)) == 400


def test_a_handle_follows_many_changes_of_another(path):
    with SqliteRecordStore(path, durability="normal") as writer, SqliteRecordStore(path) as reader:
        assert len(reader) == 0
        kept = {}
        for n in range(150):
            writer.put([example(f"text {n}", memory_id=f"m{n}")])
            kept[f"m{n}"] = f"text {n}"
            if n % 3 == 0 and n:
                writer.forget(f"m{n - 1}")
                kept.pop(f"m{n - 1}")
            if n % 4 == 0 and f"m{n // 2}" in kept:
                writer.put([example(f"again {n}", memory_id=f"m{n // 2}")])
                kept[f"m{n // 2}"] = f"again {n}"
            if n % 10 == 0:
                assert {memory.memory_id: memory.text for memory in reader.select()} == kept
        assert {memory.memory_id: memory.text for memory in reader.select()} == kept


def test_a_survey_keeps_what_it_saw_while_others_write(path):

    with SqliteRecordStore(path, durability="normal") as store:
        store.put([example(f"stone {n}", memory_id=f"m{n}", vector=v) for n, v in enumerate(clustered_vectors(50, 16))])
        survey = store.filtered_rows(Filter())
        seqs = survey.seq.tolist()
        store.put([example(f"late {n}", vector=v) for n, v in enumerate(clustered_vectors(2000, 16))])
        store.forget_many([f"m{n}" for n in range(0, 50, 2)])
        assert survey.size == 50
        assert survey.seq.tolist() == seqs
        assert survey.length.size == 50
        left = [memory.memory_id for _, memory in store.memories_at(seqs)]
        assert left == [f"m{n}" for n in range(1, 50, 2)], "rows that have gone are left out"


def test_a_put_that_fails_leaves_the_callers_memories_as_they_were(path):
    with SqliteRecordStore(path) as store:
        store.put([example("first", vector=clustered_vectors(1, 16)[0])])
        mine = [example("second"), example("third", vector=clustered_vectors(1, 32)[0])]
        with pytest.raises(InputError):
            store.put(mine)
        assert [(memory.memory_id, memory.step_number) for memory in mine] == [("", -1), ("", -1)]
        other = store.put([example("someone else's")])[0]
        mine[1].embeddings.full_vector = None
        kept = store.put(mine)
        assert other.memory_id not in {memory.memory_id for memory in kept}
        assert len(store) == 4


def test_a_vector_of_a_wrong_dimension_keeps_no_store_from_opening_and_is_reported_by_name(path):
    with SqliteRecordStore(path) as store:
        store.put([example(f"text {n}", memory_id=f"m{n}", vector=clustered_vectors(1, 16)[0]) for n in range(2)])
    with sqlite3.connect(path) as plain:
        plain.execute("UPDATE memories SET vector = x'0000803f' WHERE id = 'm1'")
    plain.close()
    with SqliteRecordStore(path) as store:
        assert [memory.memory_id for memory in store.select()] == ["m0", "m1"]
        assert [memory.memory_id for memory, _ in store.match("text 1", k=1)] == ["m1"]
    (finding,) = [finding for finding in examine(path) if finding.name == "vectors"]
    assert not finding.ok
    assert "m1" in finding.detail


def test_addresses_open_the_store_they_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store(":memory:") as store:
        assert isinstance(store, InMemoryRecordStore)
    with open_store("relative.db") as store:
        assert isinstance(store, SqliteRecordStore)
    with open_store(f"sqlite:///{tmp_path}/absolute.db") as store:
        assert store.path == tmp_path / "absolute.db"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["absolute.db", "relative.db"]
    with pytest.raises(ConfigError, match="mysql"):
        open_store("mysql://localhost/db")


def test_bad_options_are_refused_before_a_file_is_made(path):
    for options in ({"durability": "never"}, {"busy_timeout": -1}, {"busy_timeout": "1"}, {"busy_timeout": True}):
        with pytest.raises(InputError, match=next(iter(options))):
            SqliteRecordStore(path, **options)
    assert not path.exists()


def test_vectors_are_kept_to_the_last_bit(path):
    vectors = clustered_vectors(20, 33)
    with SqliteRecordStore(path) as store:
        store.put([example(f"v{n}", memory_id=f"v{n}", vector=vector) for n, vector in enumerate(vectors)])
        store.rebuild()
    with SqliteRecordStore(path) as store:
        for n, vector in enumerate(vectors):
            assert np.array_equal(store.get(f"v{n}").embeddings.full_vector, vector)


def test_the_index_compares_what_has_moved_by_the_vectors_that_it_has_now(path):
    vectors = clustered_vectors(40, 64)
    with SqliteRecordStore(path) as store, SqliteRecordStore(path) as other:
        keys = [memory.memory_id for memory in store.put([example(f"m{n}", vector=vectors[n]) for n in range(40)])]
        for tier, given in (("ltm", {}), ("stm", dict(zip(keys, vectors, strict=True))), ("im", {})):
            store.move(keys[:20], tier, given)
            with SqliteRecordStore(path) as fresh:
                for index in (one.filtered_rows(Filter())._index for one in (store, other, fresh)):
                    codes = index.vectors.decode_rows(np.arange(40))
                    kept = fresh.vectors_at(index.columns["seq"][:40], 64)
                    assert np.allclose(codes, kept, atol=0.01), tier


def test_a_snapshot_that_is_collected_while_another_is_opened_does_not_lock_them_both(path):
    from rmem.stores.sql.file import SqliteFile

    class Collecting(SqliteFile):
        def _connect(self):
            gc.collect()
            return super()._connect()

    def read():
        with file.reading() as connection:
            found.append(connection.execute("SELECT 1").fetchone())

    file, found = Collecting(path, "full", 1.0), []
    forgotten = file.snapshot()
    forgotten.__enter__()
    cycle = [forgotten]
    cycle.append(cycle)
    del forgotten, cycle
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert found == [(1,)]
    file.close()
