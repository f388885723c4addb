"""A new process leaves the codes of most vectors in the file; its answers are those of one that read them all."""

from __future__ import annotations

import shutil
import sqlite3

import numpy as np
import pytest

from rmem import Brain, Filter
from rmem.doctor import check_index, examine
from rmem.index import bits
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example
from rmem.testing.synthetic import synthetic_memories, synthetic_questions

ROWS = 4000
VECTORS = clustered_vectors(ROWS + 50, 48)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A closed store in two segments and a tail."""
    path = tmp_path_factory.mktemp("original") / "memories.db"
    with pytest.MonkeyPatch.context() as patch, SqliteRecordStore(path, durability="normal") as store:
        patch.setattr("rmem.index.segments.TARGET_RATIO", 0)  # no merging
        _put(store, range(ROWS // 2))
        store.write_segment(1)
        _put(store, range(ROWS // 2, ROWS - 20))
        store.write_segment(1)
        _put(store, range(ROWS - 20, ROWS))
        assert store.stats().segments == 2
    return path


@pytest.fixture
def path(original, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "UNREAD_FROM", 1000)
    return shutil.copytree(original.parent, tmp_path / "copy") / original.name


def _put(store, numbers):
    store.put([example(f"memory {n}", memory_id=f"m{n}", vector=VECTORS[n]) for n in numbers])


def _nearest(store, number):
    return [(memory.memory_id, score) for memory, score in store.nearest(VECTORS[number], k=10)]


def _without(path, monkeypatch, number):
    """The answer of a store that reads all codes when it is loaded."""
    with monkeypatch.context() as patch, SqliteRecordStore(path) as store:
        patch.setattr(cache, "UNREAD_FROM", 1 << 40)
        found = _nearest(store, number)
        assert store.index.vectors.unread is None
        return found


def test_the_first_question_reads_few_codes_and_the_second_all(path, monkeypatch):
    expected = _without(path, monkeypatch, 2900)
    with SqliteRecordStore(path) as store:
        at = np.array([5, 7, ROWS - 1])
        found = store.read_transaction(lambda: store.filtered_rows(Filter()).close_cosines(VECTORS[7], at))
        assert found == pytest.approx(VECTORS[at] @ VECTORS[7], abs=0.01)
        assert store.index.vectors.unread.read[0].tolist() == [5, 7]
        assert _nearest(store, 2900) == expected
        assert store.index.vectors.unread is None
        codes = store.index.vectors.codes[:ROWS]
    assert np.array_equal(codes, bits.encode(bits.unit(VECTORS[:ROWS]))[0])


def test_segments_that_were_replaced_meanwhile(path, monkeypatch):
    with SqliteRecordStore(path) as store, SqliteRecordStore(path) as other:
        first = _nearest(store, 7)
        other.forget_many([first[0][0], "m2900"])
        other.rebuild()
        assert store.stats().segments == 1
        assert _nearest(store, 7)[:9] == first[1:]
        assert _nearest(store, 2900) == _without(path, monkeypatch, 2900)
    assert [check for check in examine(path) if not check.ok] == []


def test_a_change_after_the_first_question(path, monkeypatch):
    with SqliteRecordStore(path) as store:
        _nearest(store, 7)
        store.put([example("another text", memory_id="m7", vector=VECTORS[ROWS])])
        _put(store, range(ROWS, ROWS + 50))
        store.write_segment(1)
        assert _nearest(store, 7) == _without(path, monkeypatch, 7)
        assert _nearest(store, ROWS)[0][0] in ("m7", f"m{ROWS}")
    assert [check for check in examine(path) if not check.ok] == []


def test_damaged_codes_are_noticed_by_the_second_question_and_written_again(path, monkeypatch, caplog):
    expected = [_without(path, monkeypatch, number) for number in (7, 2900)]
    with sqlite3.connect(path) as plain:
        changed = "UPDATE segment_arrays SET data = zeroblob(length(data)) WHERE name = 'vectors.codes'"
        plain.execute(f"{changed} AND first_seq > 1")
    plain.close()
    with SqliteRecordStore(path) as store:
        assert [_nearest(store, number) for number in (7, 2900)] == expected
        assert f"segment {ROWS // 2 + 1}-{ROWS - 20} is rebuilt" in caplog.text
    caplog.clear()
    with SqliteRecordStore(path) as store:
        assert [_nearest(store, number) for number in (7, 2900)] == expected
    assert not caplog.text


def test_the_doctor_compares_the_codes_in_the_segments(path):
    with sqlite3.connect(path) as plain:
        plain.execute("UPDATE segment_arrays SET data = zeroblob(length(data)) WHERE name = 'vectors.codes'")
    plain.close()
    with SqliteRecordStore(path) as store:
        assert check_index(store).ok  # computed again
        assert store.index.vectors.unread is None


def test_words_and_answers_of_real_recalls_are_the_same(tmp_path, monkeypatch):
    path = tmp_path / "memories.db"
    with Brain(path) as brain:
        brain.remember_many(list(synthetic_memories(1500, 1)))
        brain.remember_many(list(synthetic_memories(1500, 2)))
    questions = synthetic_questions(12, 1, 1500)

    def answers(brain):
        found = [[(hit.id, hit.score) for hit in brain.recall(question, 5, touch=False)] for question in questions]
        words = brain.store.index.vocabulary
        return found, words.relatives(["database", "vendor", "kitchen"]), words.vectors.codes[: len(words)]

    monkeypatch.setattr(cache, "UNREAD_FROM", 1 << 40)
    with Brain(path) as brain:
        expected = answers(brain)
    monkeypatch.setattr(cache, "UNREAD_FROM", 1000)
    with Brain(path) as brain:
        brain.recall(questions[0], 5, touch=False)
        assert brain.store.index.vocabulary.vectors.unread is not None
    with Brain(path) as brain:
        found, relatives, codes = answers(brain)
        assert brain.store.index.vocabulary.vectors.unread is None
    assert (found, relatives) == expected[:2]
    assert np.array_equal(codes, expected[2])
    for question, expected_hits in zip(questions, expected[0], strict=True):
        with Brain(path) as brain:  # each as the first question of a process
            assert [(hit.id, hit.score) for hit in brain.recall(question, 5, touch=False)] == expected_hits
