"""A writing process is killed with kill -9, again and again: what was acknowledged is there and is found."""

from __future__ import annotations

import os
import random
import sqlite3

import pytest
from fault_children import kill_after, said, start

from rmem import Brain
from rmem.doctor import examine
from rmem.stores.sql.sqlite import SqliteRecordStore

KILLS = pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])


def _unsound(path):
    return [f"{finding.name}: {finding.detail}" for finding in examine(path) if not finding.ok]


@KILLS
def test_no_acknowledged_memory_is_lost_or_unfindable_after_kills(tmp_path, kills):
    path, rng = tmp_path / "memories.db", random.Random(20)
    acknowledged: dict[str, str] = {}
    for number in range(kills):
        heard = tmp_path / f"said-{number}"
        with heard.open("w") as stdout:
            child = start("write_until_killed", path, number, stdout=stdout)
            kill_after(child, heard, rng.randint(1, 60), rng.random() * 0.02)
        fresh = dict(said(heard))
        assert fresh
        assert not fresh.keys() & acknowledged.keys()
        acknowledged |= fresh
        with Brain(path) as brain:
            assert brain.stats()["memories"] - len(acknowledged) in range(number + 2)  # one may be half-way each time
            assert None not in brain.store.get_many(list(acknowledged))
            for memory_id, word in fresh.items():
                assert [memory.memory_id for memory, _ in brain.store.match(word)] == [memory_id]
        assert _unsound(path) == []
    with Brain(path) as brain:
        for memory_id, word in acknowledged.items():
            assert brain.recall(word, k=1, mode="lexical")[0].memory.memory_id == memory_id
        for memory_id, word in list(acknowledged.items())[:: max(1, len(acknowledged) // 100)]:
            assert memory_id in [hit.memory.memory_id for hit in brain.recall(word, k=5)]


@KILLS
def test_changes_and_removals_survive_kills_while_segments_are_made_and_merged(tmp_path, kills):
    path, rng = tmp_path / "memories.db", random.Random(21)
    expected: dict[str, str] = {}  # id → its word, by what was acknowledged
    settled = 0
    for number in range(kills):
        heard = tmp_path / f"said-{number}"
        with heard.open("w") as stdout:
            child = start("churn_until_killed", path, number, stdout=stdout)
            kill_after(child, heard, rng.randint(2, 200), rng.random() * 0.03)
        waiting = None
        for when, act, what in said(heard):
            waiting = (act, what) if when == "will" else None
            if when == "did" and act == "put":
                expected |= what
            elif when == "did":
                del expected[what]
        with SqliteRecordStore(path) as store:
            held = {memory.memory_id: memory.text.removesuffix(" here") for memory in store.select()}
            if waiting is not None:  # it happened entirely or not at all
                with_it = dict(expected)
                if waiting[0] == "put":
                    with_it |= waiting[1]
                else:
                    with_it.pop(waiting[1])
                assert held in (expected, with_it)
                expected = held
            assert held == expected
            for memory_id, word in list(expected.items())[-40:]:
                assert [memory.memory_id for memory, _ in store.match(word)] == [memory_id]
            settled += store.stats().segments > 0
        assert _unsound(path) == []
    assert settled > kills / 2, "hardly any segment was ever made: this tested nothing"
    with SqliteRecordStore(path) as store:
        for memory_id, word in expected.items():
            assert [memory.memory_id for memory, _ in store.match(word)] == [memory_id]


def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    path, heard = tmp_path / "memories.db", tmp_path / "said"
    with heard.open("w") as stdout:
        child = start("write_until_killed", path, 0, stdout=stdout)
        kill_after(child, heard, 3, 0)
    assert os.path.getsize(f"{path}-wal") > 0, "the write-ahead log was expected to be left behind"
    with SqliteRecordStore(path, busy_timeout=0.2) as store:
        assert store.forget(said(heard)[0][0])
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
