"""Memories that are stored one by one, each in one statement that also checks of which kind the store is."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmem import Brain
from rmem.errors import EmbedderMismatchError, StoreBusyError, VectorError
from rmem.models import Embeddings, Memory
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.stores.vectors import EmbedderIdentity
from rmem.testing.contract import clustered_vectors

VECTORS = clustered_vectors(4, 16, seed=3)


def memory(text, step=1, vector=VECTORS[0]):
    return Memory("", "ann", step, 1_700_000_000.0, {}, text=text, embeddings=Embeddings(full_vector=vector))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


def test_memories_of_one_step_and_second_get_ids_of_their_own(path):
    with Brain(path, embedder="none") as brain:
        kept = [brain.store.put([memory(f"thought {number}", vector=None)])[0] for number in range(5)]
        assert [one.memory_id for one in kept] == [
            "ann-1-1700000000",
            *(f"ann-1-1700000000-{number}" for number in range(2, 6)),
        ]
        assert [brain.get(one.memory_id).text for one in kept] == [f"thought {number}" for number in range(5)]


def test_what_another_process_did_to_the_kind_of_the_store_is_noticed(path):
    one, other = SqliteRecordStore(path), SqliteRecordStore(path)
    one.embedder_identity = EmbedderIdentity("letters", None)
    one.put([memory("first")])
    one.put([memory("second", 2)])
    other.set_meta("embedder", "newer")
    with pytest.raises(EmbedderMismatchError, match="newer"):
        one.put([memory("third", 3)])
    assert other.count() == 2
    other.set_meta("embedder", "letters")
    one.put([memory("third", 3)])
    assert other.count() == 3
    one.close(), other.close()


def test_a_vector_of_another_size_is_refused_after_many_that_fit(path):
    with SqliteRecordStore(path) as store:
        for step in range(3):
            store.put([memory("fits", step)])
        with pytest.raises(VectorError, match="16"):
            store.put([memory("does not", 9, clustered_vectors(1, 32, seed=1)[0])])
        assert store.count() == 3
        store.put([memory("without a vector", 10, None)])
        assert store.count() == 4


def test_access_counts_that_wait_are_written_with_a_single_memory(path):
    with SqliteRecordStore(path) as store, SqliteRecordStore(path) as other:
        first = store.put([memory("first")])[0]
        store.put([memory("second", 2)])
        store.touch([first.memory_id], 1_800_000_000.0)
        store.put([memory("third", 3)])
        seen = other.get(first.memory_id)
        assert (seen.bookkeeping.retrieval_count, seen.bookkeeping.last_access_time) == (1, 1_800_000_000.0)


def test_a_single_memory_waits_for_another_writer_and_says_so_when_that_takes_too_long(path):
    with SqliteRecordStore(path, busy_timeout=0.2) as store:
        store.put([memory("first")])
        store.put([memory("second", 2)])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError):
            store.put([memory("too soon", 3)])
        other.execute("ROLLBACK")
        other.close()
        assert store.put([memory("in time", 3)])[0].memory_id == "ann-3-1700000000"
        assert [one.text for one in store.select()] == ["first", "second", "in time"]


def test_threads_that_store_one_by_one_share_transactions_and_lose_nothing(path):
    with SqliteRecordStore(path) as store:
        store.put([memory("before", 0)])
        counted: list[int] = []
        together = store._writer._commit
        store._writer._commit = lambda batch: (counted.append(len(batch)), together(batch))[1]

        def life(thread):
            return [store.put([memory(f"{thread} {step}", step, VECTORS[thread % 4])])[0] for step in range(1, 41)]

        with ThreadPoolExecutor(8) as threads:
            kept = [one for lived in threads.map(life, range(8)) for one in lived]
        assert len({one.memory_id for one in kept}) == 320
        assert {(one.memory_id, one.text) for one in kept} <= {(one.memory_id, one.text) for one in store.select()}
        assert store.count() == 321
        assert max(counted) > 1


def test_memories_without_a_step_get_the_next_one_of_their_agent_beside_another_process(path):
    with SqliteRecordStore(path) as store, SqliteRecordStore(path) as other:
        store.put([memory("first", -1)])
        kept = [one.put([memory(f"thought {number}", -1)])[0] for number in range(3) for one in (store, other)]
        assert [one.step_number for one in kept] == [1, 2, 3, 4, 5, 6]
        assert [one.memory_id for one in kept] == [f"ann-{step}-1700000000" for step in range(1, 7)]
        assert store.get("ann-4-1700000000").step_number == 4
        other.forget_many(["ann-6-1700000000"])
        assert store.put([memory("again", -1)])[0].step_number == 6


def test_a_memory_without_a_step_takes_one_statement(path):
    with SqliteRecordStore(path) as store:
        kept = [store.put([memory(text, -1)])[0] for text in ("first", "second")]  # notes the kind of the store
        statements: list[str] = []
        connection = store._file.writer
        connection.set_trace_callback(statements.append)
        kept += [store.put([memory(text, -1)])[0] for text in ("third", "fourth")]
        connection.set_trace_callback(None)
        assert len(statements) == 2
        assert [(one.memory_id, one.step_number) for one in kept] == [
            (f"ann-{step}-1700000000", step) for step in range(4)
        ]
        assert [one.step_number for one in store.select(order="step")] == [0, 1, 2, 3]


def test_steps_and_ids_left_to_the_store_are_the_same_one_by_one_and_together(tmp_path):
    drafts = [("ann", -1, 5.9), ("ann", 7, 6.0), ("ann", -1, -5.9), ("bob's", -1, 7e9), ("ann", -1, 6.5)]
    made = []
    for name in ("single", "together"):
        with SqliteRecordStore(tmp_path / name) as store:
            store.put([memory("first")])
            given = [Memory("", agent, step, when, {}, text="x") for agent, step, when in drafts]
            kept = store.put(given) if name == "together" else [store.put([one])[0] for one in given]
            made.append([(one.memory_id, one.step_number) for one in kept])
    assert (
        made[0]
        == made[1]
        == [("ann-2-5", 2), ("ann-7-6", 7), ("ann-8--5", 8), ("bob's-0-7000000000", 0), ("ann-9-6", 9)]
    )
