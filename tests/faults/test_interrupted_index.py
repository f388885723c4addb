"""An index is either right or built again: an exception at any step of refresh, merge, compaction or packing leaves no
wrong answer behind, neither in the process it happened in nor, by a segment, in others."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from rmem import Filter
from rmem.doctor import examine
from rmem.embed import word_vectors
from rmem.errors import StoreCorruptError
from rmem.index import recall_index, segments
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import WORDS, clustered_vectors, example

VECTORS = clustered_vectors(400, 48)
SPARSE, DENSE = 151, 5  # every how many lines an exception is injected


class Injected(Exception):
    """Raised between two lines of ours."""


class Tripwire:
    """Raises at the nth line that the index or the store runs: `with Tripwire(n): …`; `lines` counts them."""

    def __init__(self, at: int, kind: type[BaseException]) -> None:
        self._at, self._kind, self.lines, self.tripped = at, kind, 0, False

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if "/rmem/index/" not in name and not name.endswith(("/sql/sqlite.py", "/sql/cache.py", "/stores/memory.py")):
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._at and not self.tripped:
                self.tripped = True
                raise self._kind("injected")
        return self._trace

    def __enter__(self) -> Tripwire:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


def memories(first: int, count: int) -> list[Any]:
    rng = np.random.default_rng(first)
    return [
        example(
            " ".join([*rng.choice(WORDS, 4), f"w{n}q"]), memory_id=f"m{n}", session=f"s{n % 3}", actor="ann",
            vector=VECTORS[n], tags={"n": str(n % 5)}, position=(float(n), 1.0), contents={"size": n},
        )
        for n in range(first, first + count)
    ]  # fmt: skip


def same_as_rows(store: Any, alive: set[str]) -> None:
    """Lists, words, vectors, tags and positions of the index against brute force over the memories themselves."""
    held = {memory.memory_id: memory for memory in store.get_many(sorted(alive))}
    assert {memory.memory_id for memory in store.select()} == alive
    for word in WORDS[:6]:
        wanted = {key for key, memory in held.items() if word in memory.text.split()}
        assert {memory.memory_id for memory, _ in store.match(word, k=1000)} == wanted
    for number in (0, 90):
        query = VECTORS[number]
        exact = {key: float(memory.embeddings.full_vector @ query) for key, memory in held.items()}
        best = sorted(exact, key=exact.__getitem__, reverse=True)[:5]
        found = {memory.memory_id: score for memory, score in store.nearest(query, k=5)}
        assert sorted(found.values()) == pytest.approx(sorted(exact[key] for key in best), abs=1e-4)
    for tag in "012":
        wanted = {key for key, memory in held.items() if memory.tags["n"] == tag}
        assert {memory.memory_id for memory in store.select(Filter(tags={"n": tag}))} == wanted
    near = {key for key, memory in held.items() if abs(memory.position[0] - 50) <= 9}
    assert {memory.memory_id for memory in store.select(Filter(near=(50.0, 1.0), radius=9.0))} == near


def follow(store: SqliteRecordStore) -> None:
    """What every question does first."""
    store.refresh()
    store.filtered_rows(Filter()).relatives([])


def settle(store: SqliteRecordStore) -> None:
    store.write_segment(1)


def nearest(store: SqliteRecordStore) -> None:
    store.nearest(VECTORS[3], k=5)


@pytest.mark.parametrize(
    ("work", "kind", "stride"),
    [
        (follow, MemoryError, SPARSE),
        (settle, KeyboardInterrupt, SPARSE),
        (nearest, MemoryError, SPARSE),
        *(
            pytest.param(work, kind, DENSE, marks=pytest.mark.slow)
            for work in (follow, settle, nearest)
            for kind in (MemoryError, KeyboardInterrupt)
        ),
    ],
)
def test_an_exception_anywhere_leaves_no_wrong_answer(tmp_path, monkeypatch, work, kind, stride):
    monkeypatch.setattr(cache, "SEGMENT_FROM", 10_000)
    monkeypatch.setattr(cache, "CHANGES_FROM", 5)
    monkeypatch.setattr(recall_index, "_MANY_DEAD", 20)
    monkeypatch.setattr(recall_index, "_PACK_TAIL", 200)
    path = tmp_path / "memories.db"
    lines = _lines_of(tmp_path / "counted.db", work)
    with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as writer:
        alive = _fill(writer)
        at = 1
        while at < lines:
            with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as store:
                _half_way(store, writer, alive)
                try:
                    with Tripwire(at, kind) as wire:
                        work(store)
                except (kind, Injected):
                    pass
                assert wire.tripped or wire.lines < at
                same_as_rows(store, alive)
                store.write_segment(1)  # what others get of it
            at += stride
        with SqliteRecordStore(path, word_vectors=word_vectors) as fresh:
            same_as_rows(fresh, alive)
    assert [finding for finding in examine(path) if not finding.ok] == []


def _fill(writer: SqliteRecordStore) -> set[str]:
    writer.put(memories(0, 90))
    writer.write_segment(1)
    writer.put(memories(90, 40))
    return {f"m{n}" for n in range(130)}


def _half_way(store: SqliteRecordStore, writer: SqliteRecordStore, alive: set[str]) -> None:
    """A store that has seen a part, while the writer goes on: rows, changes and removals to follow."""
    store.refresh()
    for n in range(100, 110):
        writer.change(f"m{n}", lambda memory: memory)
    writer.move(["m1", "m2"], "stm")
    extra = memories(200, 30)
    writer.put(extra)
    writer.forget_many([memory.memory_id for memory in extra])
    writer._unscrubbed = False


def _lines_of(path: Any, work: Callable[[SqliteRecordStore], None]) -> int:
    """How many lines the work has when nothing is in its way."""
    with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as writer:
        alive = _fill(writer)
        with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as store:
            _half_way(store, writer, alive)
            with Tripwire(-1, Injected) as wire:
                work(store)
    assert wire.lines > 100
    return wire.lines


def test_an_exception_while_a_bulk_is_handed_to_the_index_loses_and_doubles_nothing(tmp_path):
    with SqliteRecordStore(tmp_path / "counted.db", durability="normal") as store, Tripwire(-1, Injected) as wire:
        store.put(memories(0, 300))
    for at in range(20, wire.lines, wire.lines // 12):
        path = tmp_path / f"{at}.db"
        with SqliteRecordStore(path, durability="normal") as store:
            try:
                with Tripwire(at, MemoryError):
                    store.put(memories(0, 300))
            except MemoryError:
                assert store.count() == 0, "what raises must not be stored"
                store.put(memories(0, 300))
            same_as_rows(store, {f"m{n}" for n in range(300)})


@pytest.mark.parametrize("stride", [SPARSE, pytest.param(DENSE, marks=pytest.mark.slow)])
def test_the_store_in_memory_answers_rightly_after_an_exception_anywhere(stride):
    def work(store: InMemoryRecordStore) -> None:
        store.put(memories(40, 20))

    counted = InMemoryRecordStore()
    counted.put(memories(0, 60))
    with Tripwire(-1, Injected) as wire:
        work(counted)
    for at in range(1, wire.lines, stride):
        store = InMemoryRecordStore()
        store.put(memories(0, 60))
        try:
            with Tripwire(at, MemoryError):
                work(store)
        except MemoryError:
            pass
        same_as_rows(store, {f"m{n}" for n in range(60)})


def test_a_segment_with_parts_that_do_not_fit_is_not_trusted_although_its_checksums_are_right(tmp_path, caplog):
    """As a version with a fault in it might write it for everybody."""
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path) as store:
        store.put(memories(0, 60))
        store.refresh()
        packed = segments.pack(store.index, 1, 60, 0)
        packed.arrays["terms.rows"] = packed.arrays["terms.rows"] + np.uint32(40)
        store.write(lambda connection: cache.save(connection, packed))
    with SqliteRecordStore(path) as store:
        same_as_rows(store, {f"m{n}" for n in range(60)})
    assert "do not fit each other" in caplog.text


def test_a_read_error_that_ends_the_snapshot_while_segments_are_loaded_is_told_as_it_is(tmp_path, monkeypatch):
    """SQLite ends a transaction by itself when the disk fails; what would be read after it is another state."""
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path) as store:
        store.put(memories(0, 60))
    load = cache.load

    def failing(connection, *rest):
        monkeypatch.setattr(cache, "load", load)
        connection.execute("ROLLBACK")
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    monkeypatch.setattr(cache, "load", failing)
    with SqliteRecordStore(path) as store:
        with pytest.raises(StoreCorruptError, match="malformed"):
            store.match("memory")
        same_as_rows(store, {f"m{n}" for n in range(60)})
