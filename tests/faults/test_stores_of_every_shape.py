"""Stores of many shapes open in a new process at every step of their life, and answer as a plain scan of them would."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmem import Brain
from rmem.doctor import examine
from rmem.embed import word_vectors
from rmem.index import segments, vocabulary
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example

OPEN = """
import sys
from rmem.embed import word_vectors
from rmem.stores.sql.sqlite import SqliteRecordStore
with SqliteRecordStore(sys.argv[1], word_vectors=word_vectors) as store:
    survey = store.filtered_rows(__import__("rmem").Filter())
    print(survey.size, store.stats().memories, len(store.match(sys.argv[2], k=100_000)))
"""


def open_in_new_process(path, word):
    """(rows of a survey, memories, matches of a word), as a process finds them that never saw the store before."""
    done = subprocess.run([sys.executable, "-c", OPEN, str(path), word], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return tuple(map(int, done.stdout.split()))


@pytest.fixture(scope="module")
def wordly(tmp_path_factory):
    """The store of the report: many memories over 3,000 words, settled; closed."""
    path = tmp_path_factory.mktemp("wordly") / "memories.db"
    words = [f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}word" for n in range(3000)]
    vectors = clustered_vectors(5000, 64)
    with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as store:
        for start in range(0, 3000, 1000):
            store.put(
                [example(f"{words[n]} {words[(7 * n) % 3000]}", vector=vectors[n]) for n in range(start, start + 1000)]
            )
        store.write_segment(1)
        assert store.stats().segments == 1
    return path, words, vectors


def test_a_later_segment_without_new_words_keeps_nobody_from_opening_the_store(wordly, tmp_path, monkeypatch):
    path, words, vectors = wordly
    monkeypatch.setattr(segments, "TARGET_RATIO", 0)  # as with segments too large to be merged
    with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as store:
        for n in range(cache.SEGMENT_FROM // 128 + 1):
            store.put(
                [example(words[i], vector=vectors[3000 + i]) for i in range(128 * n % 1024, 128 * n % 1024 + 128)]
            )
        assert store.stats().segments == 2
        total = store.stats().memories
    assert open_in_new_process(path, words[5])[:2] == (total, total)
    with Brain(path, durability="normal", embedder="none") as brain:
        brain.remember("stored once, whatever happens to segments")
        assert len(brain.memories(limit=None)) == total + 1


def test_a_segment_without_a_live_row_keeps_nobody_from_opening_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "TARGET_RATIO", 0)
    path = tmp_path / "memories.db"
    vectors = clustered_vectors(4000, 64)
    with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as store:
        store.put([example(f"lasting memory number{n}", vector=vectors[n]) for n in range(2000)])
        store.write_segment(1)
        kept = store.put([example("passing", vector=vectors[2000 + n]) for n in range(300)])
        store.forget_many([memory.memory_id for memory in kept])
        store._unscrubbed = False
        store.write_segment(1)
        assert store.stats().segments == 2
    assert open_in_new_process(path, "lasting") == (2000, 2000, 2000)


def test_more_words_than_the_vocabulary_holds_keep_nobody_from_opening_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "TARGET_RATIO", 0)
    monkeypatch.setattr(vocabulary, "_LIMIT", 50)
    path = tmp_path / "memories.db"
    letters = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}quux" for n in range(200)]
    for part in range(4):
        with SqliteRecordStore(path, durability="normal", word_vectors=word_vectors) as store:
            store.put([example(f"{letters[50 * part + n]} every") for n in range(50)])
            store.write_segment(1)
            assert len(store.match("every", k=1000)) == 50 * (part + 1)
    with SqliteRecordStore(path, word_vectors=word_vectors) as store:
        assert len(store.match("every", k=1000)) == 200
        assert len(store.match(letters[199], k=10)) == 1


TEXTS = st.lists(
    st.sampled_from(["", "wolf", "wolf river", "été straße", "a b c", "same same same", "的 记忆"]), max_size=9
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), TEXTS, st.booleans()),
        st.tuples(st.just("forget"), st.floats(0, 1), st.just(0)),
        st.tuples(st.just("change"), st.floats(0, 1), st.just(0)),
        st.tuples(st.just("move"), st.sampled_from(["stm", "im", "ltm"]), st.just(0)),
        st.tuples(st.just("settle"), st.just(0), st.just(0)),
    ),
    max_size=14,
)


@given(STEPS, st.sampled_from([1, 2, 8]), st.sampled_from([0, 4]))
def test_any_history_gives_the_same_answers_to_whoever_opens_the_store(tmp_path_factory, steps, settle_from, ratio):
    path = tmp_path_factory.mktemp("shapes") / "memories.db"
    alive: dict[str, str] = {}
    vectors = clustered_vectors(200, 40)
    number = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "SEGMENT_FROM", settle_from)
        patch.setattr(cache, "CHANGES_FROM", 3)
        patch.setattr(cache, "CHANGES_KEPT", 2)
        patch.setattr(segments, "TARGET_RATIO", ratio)
        patch.setattr("rmem.index.recall_index._MANY_DEAD", 4)
        with SqliteRecordStore(path, durability="normal") as lasting:  # follows along from the beginning
            for what, value, with_vectors in steps:
                with SqliteRecordStore(path, durability="normal") as store:
                    keys = sorted(alive)
                    if what == "put":
                        fresh = []
                        for text in value:
                            number += 1
                            vector = vectors[number % 200] if with_vectors else None
                            fresh.append(example(text, memory_id=f"m{number}", vector=vector))
                            alive[f"m{number}"] = text
                        store.put(fresh)
                    elif what == "forget" and keys:
                        for key in keys[: int(value * len(keys)) + 1]:
                            store.forget(key)
                            del alive[key]
                    elif what == "change" and keys:
                        key = keys[int(value * (len(keys) - 1))]
                        store.change(key, lambda memory: _with_text(memory, "changed wolf"))
                        alive[key] = "changed wolf"
                    elif what == "move" and keys:
                        store.move(keys[:3], value)
                    elif what == "settle":
                        store.write_segment(1)
                    _same(store, alive)
                with SqliteRecordStore(path, durability="normal") as fresh_eyes:
                    _same(fresh_eyes, alive)
                _same(lasting, alive)
        assert [finding for finding in examine(path) if not finding.ok] == []


def _with_text(memory, text):
    memory.text = text
    memory.contents = {"text": text}
    return memory


def _same(store, alive):
    assert {memory.memory_id: memory.text for memory in store.select()} == alive
    assert {memory.memory_id for memory, _ in store.match("wolf", k=1000)} == {
        key for key, text in alive.items() if "wolf" in text
    }
    survey = store.filtered_rows(__import__("rmem").Filter())
    if survey.dimension is not None and survey.size:
        exact = {memory.memory_id: memory for memory, _ in store.nearest(clustered_vectors(1, 40)[0], k=1000)}
        assert set(exact) <= set(alive)


DAMAGE = {
    "terms": "UPDATE memories SET terms = x'0102' WHERE id = 'm3'",
    "words": "UPDATE memories SET words = 'a' || char(10) || 'b' || char(10) || words WHERE id = 'm3'",
    "words of another encoding": "UPDATE memories SET words = CAST(x'ff' AS TEXT) WHERE id = 'm3'",
    "marks": "UPDATE memories SET marks = x'01' WHERE id = 'm3'",
    "flags": "UPDATE memories SET flags = 'many' WHERE id = 'm3'",
    "vector": "UPDATE memories SET vector = x'010203' WHERE id = 'm3'",
    "numbers": "UPDATE memories SET numbers = x'01' WHERE id = 'm3'",
    "a segment's head": "UPDATE segments SET head = 'gone'",
    "a segment's rows": "UPDATE segments SET rows = rows + 1",
    "a segment's span": "UPDATE segments SET last_seq = 7",
    "no arrays": "DELETE FROM segment_arrays WHERE name LIKE 'terms%'",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_derived_data_keeps_nobody_from_opening_the_store(tmp_path, what, caplog):
    path = tmp_path / "memories.db"
    vectors = clustered_vectors(40, 40)
    with SqliteRecordStore(path) as store:
        store.put([example(f"wolf number{n}", memory_id=f"m{n}", vector=vectors[n]) for n in range(40)])
        if "segment" in what or "arrays" in what:
            store.write_segment(1)
    _execute(path, DAMAGE[what])
    with caplog.at_level(logging.WARNING), SqliteRecordStore(path) as store:
        assert len(store.match("wolf", k=100)) == 40
        assert [memory.memory_id for memory, _ in store.match("number3", k=1)] == ["m3"]
        assert len(store.select()) == 40
        store.put([example("one more wolf", memory_id="m99", vector=vectors[0])])
        assert len(store.match("wolf", k=100)) == 41


@pytest.mark.parametrize(
    "damage",
    [
        "contents = '{\"half'",
        "tags = 'no json'",
        "time = 'noon'",
        "agent = NULL",
        "position = '[x]'",
        "level = 9",
        "tier = 'attic'",
        "text = NULL, contents = NULL",
        "packed = x'00ff'",
        "step = 'first'",
        "importance = x'00'",
    ],
)
def test_one_damaged_memory_fails_no_list_and_no_recall_and_is_named_by_the_doctor(tmp_path, damage):
    path = tmp_path / "memories.db"
    with Brain(path) as brain:
        brain.remember_many([{"text": f"the wolf of day {n}", "id": f"m{n}"} for n in range(5)])
    _execute(
        path, "PRAGMA ignore_check_constraints = ON", _loosened(path, f"UPDATE memories SET {damage} WHERE id = 'm2'")
    )
    with Brain(path) as brain:
        others = {"m0", "m1", "m3", "m4"}
        assert {memory.memory_id for memory in brain.memories()} >= others
        for mode in ("lexical", "vector", "hybrid"):
            assert {hit.memory.memory_id for hit in brain.recall("wolf day", k=10, mode=mode)} >= others
        assert brain.remember("still writing").text == "still writing"
    wrong = [finding for finding in examine(path) if not finding.ok]
    assert any("m2" in finding.detail for finding in wrong), wrong


def _loosened(path, sql):
    """The statement, with NOT NULL left out of the table's definition as a damaged page may have it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'memories'")
    connection.commit()
    connection.close()
    return sql


def _execute(path, *statements):
    connection = sqlite3.connect(path)
    with connection:
        for sql in statements:
            connection.execute(sql)
    connection.close()


def test_a_failure_behind_the_commit_does_not_reach_whoever_remembers(tmp_path, monkeypatch, caplog):
    """The row is stored: who is told otherwise stores it again."""
    path = tmp_path / "memories.db"
    monkeypatch.setattr(cache, "SEGMENT_FROM", 4)
    monkeypatch.setattr(cache, "SEGMENT_BULK", 4)
    monkeypatch.setattr(segments, "pack", _fail)
    with Brain(path) as brain:
        for n in range(6):
            brain.remember(f"number {n}")
        brain.update(brain.memories()[0].memory_id, importance=0.9)
        monkeypatch.setattr("rmem.index.recall_index.RecallIndex.extend", _fail)
        brain.remember_many([{"text": f"bulk {n}"} for n in range(300)])
    monkeypatch.undo()
    assert "no new segment was written" in caplog.text
    with Brain(path) as brain:
        assert len(brain.memories(limit=None)) == 306
        assert len(brain.recall("bulk", k=500, mode="lexical")) == 300


def _fail(*_):
    raise MemoryError("injected")
