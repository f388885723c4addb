"""Segments are a cache. Whatever happens to them behind our back, the answers stay the same."""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from rmem import Filter
from rmem.doctor import examine, repair
from rmem.index.segments import checksum
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import FILTERS, WORDS, clustered_vectors, example

QUERIES = ("wolf", "copper bridge", "river winter signal", "violet lantern harbour")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A store in several segments and a tail, with memories that were changed and forgotten since; closed."""
    path = tmp_path_factory.mktemp("original") / "memories.db"
    rng = np.random.default_rng(5)
    vectors = clustered_vectors(1000, 48)
    with pytest.MonkeyPatch.context() as patch, SqliteRecordStore(path, durability="normal") as store:
        patch.setattr(cache, "SEGMENT_FROM", 64)
        patch.setattr(cache, "SEGMENT_BULK", 64)
        for start in range(0, 900, 50):
            if start == 700:
                patch.setattr("rmem.index.segments.TARGET_RATIO", 0)  # no more merging
            store.put(
                [
                    example(
                        " ".join(rng.choice(WORDS, 6)),
                        memory_id=f"m{n}",
                        agent_id=f"agent-{n % 3}",
                        session=f"s-{n % 4}",
                        actor=("alice", "bob", None)[n % 3],
                        memory_type=("state", "action")[n % 2],
                        tags={"repo": f"r{n % 4}"},
                        contents={"count": n % 6},
                        step_number=n,
                        timestamp=1_700_000_000.0 + 60 * n,
                        importance_score=(n % 11) / 10,
                        position=(float(n % 10), float(n // 10 % 10)),
                        place="forest" if n % 3 == 0 else None,
                        vector=vectors[n],
                    )
                    for n in range(start, start + 50)
                ]
            )
            if start in (300, 750):
                store.forget_many([f"m{n}" for n in range(start - 40, start, 7)])
                store.put([example("orchid replaced", memory_id=f"m{start - 33}", session="s-1", agent_id="agent-0")])
        store.put([example("violet tail", memory_id=f"t{n}", vector=vectors[900 + n]) for n in range(20)])
        store.forget("m5")
        store.put([example("river replaced", memory_id="m10", agent_id="agent-1", session="s-2")])
        assert store.stats().segments >= 3
        store._unscrubbed = False  # as a process leaves it that is killed: closing would pack all into one segment
    return path, answers(path)


@pytest.fixture
def settled(original, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copy(original[0], tmp_path))


@pytest.fixture
def before(original):
    """What it answered when it was whole."""
    return original[1]


def answers(path):
    """Everything that a user can see of the index: filters, words, vectors, neighbours. Scores stand apart."""
    vectors = clustered_vectors(5, 48, seed=9)
    scores: list[float] = []
    with SqliteRecordStore(path) as store:
        seen: list[object] = [[m.memory_id for m in store.select(Filter.of(where))] for where in ({}, *FILTERS)]
        for where in ({}, {"agent": "agent-1"}, {"place": "forest"}):
            found = [store.match(query, Filter.of(where), k=30) for query in QUERIES]
            found += [store.nearest(vector, Filter.of(where), k=10) for vector in vectors]
            for hits in found:
                seen.append([memory.memory_id for memory, _ in hits])
                scores += [score for _, score in hits]
        survey = store.filtered_rows(Filter.of({"session": "s-1"}))
        ids = np.array([m.memory_id for _, m in store.memories_at(survey.seq.tolist())] + [""])
        everyone = np.arange(survey.size)
        seen.append([ids[survey.before(everyone)].tolist(), ids[survey.after(everyone)].tolist()])
        stats = store.stats()
        seen.append([stats.memories, stats.by_agent, stats.by_type, stats.vectors, stats.dimension])
    assert seen[0], "an empty store would prove nothing"
    return seen, pytest.approx(scores, rel=1e-5, abs=1e-6)


def same(path, before):
    """Whether a store answers as it did."""
    seen, scores = answers(path)
    return seen == before[0] and scores.expected == before[1]


def _sound(path):
    return [f"{finding.name}: {finding.detail}" for finding in examine(path) if not finding.ok] == []


def _change(path, *statements):
    with sqlite3.connect(path) as plain:
        plain.execute("PRAGMA foreign_keys = OFF")
        for statement, *values in statements:
            assert plain.execute(statement, values).rowcount != 0, statement
    plain.close()


def _replace_array(path, first_seq, name, change):
    with sqlite3.connect(path) as plain:
        (data,) = plain.execute(
            "SELECT data FROM segment_arrays WHERE first_seq = ? AND name = ?", (first_seq, name)
        ).fetchone()
        changed = change(bytearray(data))
        assert bytes(changed) != data
        plain.execute(
            "UPDATE segment_arrays SET data = ? WHERE first_seq = ? AND name = ?", (bytes(changed), first_seq, name)
        )
    plain.close()


def _segments(path):
    with sqlite3.connect(path) as plain:
        rows = plain.execute(
            "SELECT first_seq, last_seq, rows, changes, head FROM segments ORDER BY first_seq"
        ).fetchall()
    plain.close()
    return rows


def _set_head(path, first_seq, change):
    (head,) = [head for first, *_, head in _segments(path) if first == first_seq]
    described = json.loads(head)
    change(described)
    _change(path, ("UPDATE segments SET head = ? WHERE first_seq = ?", json.dumps(described), first_seq))


def _rename_agent(described):
    described["names"]["group"] = [["agent-7", session] for _, session in described["names"]["group"]]


DAMAGE = {
    "all segments are gone": lambda path, spans: _change(
        path, ("DELETE FROM segment_arrays",), ("DELETE FROM segments",)
    ),
    "the table of segments is empty": lambda path, spans: _change(path, ("DELETE FROM segments",)),
    "the arrays are gone": lambda path, spans: _change(path, ("DELETE FROM segment_arrays",)),
    "the first is gone": lambda path, spans: _change(path, ("DELETE FROM segments WHERE first_seq = 1",)),
    "one in the middle is gone": lambda path, spans: _change(
        path, ("DELETE FROM segments WHERE first_seq = ?", spans[1][0])
    ),
    "the last is gone": lambda path, spans: _change(path, ("DELETE FROM segments WHERE first_seq = ?", spans[-1][0])),
    "one array is gone": lambda path, spans: _change(
        path, ("DELETE FROM segment_arrays WHERE first_seq = ? AND name = 'terms.rows'", spans[1][0])
    ),
    "an array is cut": lambda path, spans: _replace_array(path, 1, "terms.rows", lambda data: data[:-4]),
    "an array is cut to an odd length": lambda path, spans: _replace_array(
        path, spans[1][0], "vectors.codes", lambda data: data[:-3]
    ),
    "an array is empty": lambda path, spans: _replace_array(path, spans[-1][0], "seq", lambda data: b""),
    "an array is too long": lambda path, spans: _replace_array(path, 1, "time", lambda data: data + b"12345678"),
    "two pages of an array are swapped": lambda path, spans: _replace_array(
        path, 1, "vectors.codes", lambda data: data[8192:16_384] + data[:8192] + data[16_384:]
    ),
    "another format": lambda path, spans: _set_head(path, 1, lambda head: head.update(format=99)),
    "another analyser": lambda path, spans: _set_head(path, spans[1][0], lambda head: head.update(analyser=99)),
    "a head that is no JSON": lambda path, spans: _change(path, ("UPDATE segments SET head = '{\"format\": 1,'",)),
    "a head that says nothing": lambda path, spans: _change(path, ("UPDATE segments SET head = '{}'",)),
    "a head that is no object": lambda path, spans: _change(path, ("UPDATE segments SET head = '[]'",)),
    "a head that knows fewer arrays": lambda path, spans: _set_head(
        path, spans[1][0], lambda head: head["arrays"].pop("marks.terms")
    ),
    "a head with another agent's name": lambda path, spans: _set_head(path, 1, _rename_agent),
    "a head that lost its names": lambda path, spans: _set_head(path, 1, lambda head: head.pop("names")),
    "a span that claims later rows": lambda path, spans: _change(
        path, ("UPDATE segments SET last_seq = last_seq + 5 WHERE first_seq = ?", spans[-1][0])
    ),
    "a segment that claims to know later changes": lambda path, spans: _change(
        path, ("UPDATE segments SET changes = changes + 100",)
    ),
    "a segment that claims fewer rows": lambda path, spans: _change(
        path, ("UPDATE segments SET rows = rows - 1 WHERE first_seq = 1",)
    ),
    "segments that overlap": lambda path, spans: _change(
        path, ("UPDATE segments SET last_seq = last_seq - 5 WHERE first_seq = 1",)
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_segments_are_noticed_and_change_no_answer(settled, before, what):
    DAMAGE[what](settled, _segments(settled))
    assert same(settled, before)


@pytest.mark.parametrize("what", ["all segments are gone", "an array is cut", "a head that is no JSON"])
def test_repair_puts_damaged_segments_right(settled, before, what):
    DAMAGE[what](settled, _segments(settled))
    repair(settled)
    assert _sound(settled)
    assert _segments(settled)[-1][1] >= 900, "the index was not made anew"
    assert same(settled, before)


def test_a_damaged_segment_is_mentioned_in_the_log(settled, caplog):
    _replace_array(settled, 1, "terms.counts", lambda data: bytes(len(data)))
    with caplog.at_level(logging.WARNING), SqliteRecordStore(settled) as store:
        assert store.count() > 800
    assert "rebuilt from the rows" in caplog.text
    assert "terms.counts is damaged" in caplog.text


def test_the_process_that_notices_a_damaged_segment_replaces_it(settled, before, monkeypatch):
    """A store heals by itself: whoever comes second loads the index from segments again."""
    _replace_array(settled, 1, "terms.counts", lambda data: bytes(len(data)))
    damaged = []
    monkeypatch.setattr(cache.log, "warning", lambda message, *values: damaged.append(message % values))
    assert same(settled, before)
    assert len(damaged) == 1
    assert same(settled, before)
    assert len(damaged) == 1


def test_every_single_bit_flip_changes_the_checksum():
    rng = np.random.default_rng(1)
    for size in (1, 7, 8, 9, 64, 1001):
        whole = rng.integers(0, 256, size, np.uint8)
        expected = checksum(whole)
        for at in range(0, size, max(1, size // 40)):
            for bit in range(8):
                flipped = whole.copy()
                flipped[at] ^= 1 << bit
                assert checksum(flipped) != expected, (size, at, bit)


@pytest.mark.parametrize("seed", range(6))
def test_any_flipped_bit_of_any_array_is_noticed(settled, before, seed):
    rng = np.random.default_rng(seed)
    with sqlite3.connect(settled) as plain:
        names = plain.execute("SELECT first_seq, name FROM segment_arrays WHERE length(data) > 0").fetchall()
    plain.close()
    for _ in range(3):
        first_seq, name = names[rng.integers(len(names))]

        def flip(data):
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
            return data

        _replace_array(settled, first_seq, name, flip)
    assert same(settled, before)


def test_doctor_and_repair_put_right_what_is_derived_in_the_rows(settled, before):
    """Terms and marks are derived too: lost ones are noticed and computed again."""
    with sqlite3.connect(settled) as plain:
        plain.execute("UPDATE memories SET terms = x'00', words = '' WHERE id = 'm20'")
    plain.close()
    assert not _sound(settled)
    done = repair(settled)
    assert any("terms" in line for line in done)
    assert _sound(settled)
    assert same(settled, before)


def test_lost_marks_are_computed_again_by_repair(settled, before):
    _change(settled, ("UPDATE memories SET marks = x''",), ("DELETE FROM segments",))
    repair(settled)
    assert same(settled, before)
    assert _sound(settled)


def test_words_are_known_after_settling_whoever_settled(settled):
    """A store opened without word vectors packs segments too; others then still find related words there."""
    from rmem import Brain

    with SqliteRecordStore(settled) as store:
        store.rebuild()
        words = store.stats().words
    with SqliteRecordStore(settled) as store:
        assert store.stats().words == words > 10
    with Brain(settled, embedder="none") as brain:
        hits = brain.recall("a signal in the snow", k=3, explain=True)
        assert any(match.matched == "winter" for hit in hits for match in hit.explanation.words)
        assert brain.stats()["words"] == words


def test_the_doctor_notices_an_index_that_lacks_rows(settled):
    """Rows deleted by hand, without an entry in the change log."""
    with sqlite3.connect(settled) as plain:
        plain.execute("DELETE FROM memories WHERE id = 'm20'")
    plain.close()
    findings = {finding.name: finding for finding in examine(settled)}
    assert not findings["index"].ok
    assert "1 that no longer exist" in findings["index"].detail
    repair(settled)
    assert _sound(settled)
    with SqliteRecordStore(settled) as store:
        assert store.get("m20") is None
        assert "m20" not in [memory.memory_id for memory in store.select()]


def test_an_open_store_follows_a_repair_by_another(settled, before):
    with SqliteRecordStore(settled) as store:
        ids = [memory.memory_id for memory in store.select()]
        repair(settled)
        assert [memory.memory_id for memory in store.select()] == ids
        store.forget(ids[0])
        assert [memory.memory_id for memory in store.select()] == ids[1:]
    assert answers(settled)[0][0] == before[0][0][1:]


def test_segments_of_two_processes_that_settle_at_once_do_not_harm(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SEGMENT_FROM", 16)
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path) as one, SqliteRecordStore(path) as two:
        for number in range(200):
            writer = (one, two)[number % 2]
            writer.put([example(f"stone {number}", memory_id=f"m{number}")])
            if number % 9 == 8:
                (two, one)[number % 2].forget(f"m{number - 4}")
                one.write_segment(1)
                two.write_segment(1)
        expected = [memory.memory_id for memory in one.select()]
        assert [memory.memory_id for memory in two.select()] == expected
        spans = _segments(path)
        assert [first for first, *_ in spans] == [1, *[last + 1 for _, last, *_ in spans[:-1]]]
    with SqliteRecordStore(path) as third:
        assert [memory.memory_id for memory in third.select()] == expected
    assert _sound(path)
