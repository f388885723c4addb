"""Many memories in one transaction: the writer's index takes them in without reading them back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rmem import Filter
from rmem.models import Memory
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example

MANY = 300


def bulk(start: int = 0) -> list[Memory]:
    vectors = clustered_vectors(MANY, 64, seed=start)
    return [
        example(
            f"note {start + at} about copper kettles",
            session=f"s{at % 7}",
            tags={"part": str(at % 3)},
            contents={"even": at % 2 == 0},
            vector=vectors[at],
        )
        for at in range(MANY)
    ]


def found(store: SqliteRecordStore) -> list[object]:
    return [
        store.select(),
        store.select(Filter(tags={"part": "1"}, attributes={"even": True})),
        store.match("note 17 kettles", k=20),
        [memory.memory_id for memory, _ in store.nearest(np.eye(64, dtype=np.float32)[0], k=10)],
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


def test_the_writer_finds_what_a_new_process_finds(path):
    with SqliteRecordStore(path) as writer:
        writer.put(bulk())
        writer.put(bulk(1000))
        with SqliteRecordStore(path) as reader:
            assert found(writer) == found(reader)
            assert len(writer) == 2 * MANY


def test_what_others_write_between_two_bulks_is_found_too(path):
    with SqliteRecordStore(path) as writer, SqliteRecordStore(path) as other:
        writer.put(bulk())
        (kept,) = other.put([example("a lonely lighthouse")])
        other.forget(writer.select(limit=1)[0].memory_id)
        other.put([example("a second lighthouse")])
        writer.put(bulk(1000))
        assert len(writer) == len(other) == 2 * MANY + 1
        assert kept.memory_id in [memory.memory_id for memory, _ in writer.match("lighthouse")]
        assert found(writer) == found(other)


def test_a_bulk_with_known_ids_replaces_them(path):
    with SqliteRecordStore(path) as writer:
        first = writer.put(bulk())
        again = bulk(1000)
        for old, new in zip(first, again, strict=True):
            new.memory_id = old.memory_id
        writer.put(again)
        assert len(writer) == MANY
        assert {memory.text for memory in writer.select()} == {memory.text for memory in again}


def test_next_steps_follow_the_steps_given_earlier_in_the_same_bulk(path):
    with SqliteRecordStore(path) as writer:
        kept = writer.put([example("one", step_number=41), example("two"), example("three", agent_id="b")])
        assert [memory.step_number for memory in kept] == [41, 42, 0]


def test_a_replaced_memory_no_longer_counts_for_the_next_step(path):
    with SqliteRecordStore(path) as writer:
        writer.put([example("high", memory_id="m", step_number=50)])
        kept = writer.put([example("low", memory_id="m", step_number=3), example("next")])
        assert [memory.step_number for memory in kept] == [3, 4]


def test_ids_made_in_one_bulk_differ_although_step_and_time_are_the_same(path):
    with SqliteRecordStore(path) as writer:
        kept = writer.put([example("same", step_number=1) for _ in range(3)])
        assert [memory.memory_id for memory in kept] == [
            "agent-1-1-1700000000", "agent-1-1-1700000000-2", "agent-1-1-1700000000-3",
        ]  # fmt: skip
