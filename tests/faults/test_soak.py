"""Long runs: everything at once, for minutes, with a check at the end of each. Run by `make test-slow`."""

from __future__ import annotations

import json
import random
import threading

import pytest
from fault_children import kill_after, said, start

from rmem import Brain
from rmem.doctor import examine, repair
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example
from rmem.upkeep import backup

pytestmark = pytest.mark.slow


def _unsound(path):
    return [f"{finding.name}: {finding.detail}" for finding in examine(path) if not finding.ok]


def test_a_hundred_kills_under_churn(tmp_path):
    path, rng = tmp_path / "memories.db", random.Random(100)
    expected: dict[str, str] = {}
    for number in range(100):
        heard = tmp_path / "said"
        with heard.open("w") as stdout:
            child = start("churn_until_killed", path, number, stdout=stdout)
            kill_after(child, heard, rng.randint(2, 400), rng.random() * 0.1)
        waiting = None
        for when, act, what in said(heard):
            waiting = (act, what) if when == "will" else None
            if when == "did" and act == "put":
                expected |= what
            elif when == "did":
                del expected[what]
        with SqliteRecordStore(path) as store:
            held = {memory.memory_id: memory.text.removesuffix(" here") for memory in store.select()}
            if waiting is not None:
                with_it = dict(expected)
                with_it.update(waiting[1]) if waiting[0] == "put" else with_it.pop(waiting[1])
                assert held in (expected, with_it)
                expected = held
            assert held == expected
        if number % 10 == 9:
            assert _unsound(path) == []
            backup(path, tmp_path / f"copy-{number}.db")
            assert _unsound(tmp_path / f"copy-{number}.db") == []
        if number % 25 == 24:
            repair(path)


def test_four_processes_write_ten_thousand_memories_together(tmp_path):
    path, each, threads = tmp_path / "memories.db", 320, 8
    children = [start("write_with_threads", path, name, threads, each) for name in range(1, 5)]
    acknowledged: list[list] = []

    def listen(child):
        acknowledged.extend(json.loads(line) for line in child.stdout)

    ears = [threading.Thread(target=listen, args=(child,)) for child in children]
    for ear in ears:
        ear.start()
    with Brain(path) as reader:
        while any(child.poll() is None for child in children):
            assert len(reader.recall("written beside others", k=10)) <= 10
        for ear in ears:
            ear.join()
        assert [child.returncode for child in children] == [0] * 4
        assert len(acknowledged) == 4 * threads * each
        assert len({memory_id for memory_id, *_ in acknowledged}) == len(acknowledged) == len(reader.store)
        assert sorted(step for _, step, *_ in acknowledged) == list(range(len(acknowledged)))
        assert all(found for *_, found in acknowledged)
    assert _unsound(path) == []


def test_a_store_that_is_rewritten_for_long_stays_in_shape(tmp_path, monkeypatch):
    """Updates and removals leave nothing behind that grows without end."""
    monkeypatch.setattr(cache, "SETTLE_FROM", 256)
    path, vectors = tmp_path / "memories.db", clustered_vectors(500, 64)
    with SqliteRecordStore(path, durability="normal") as store:
        for turn in range(60):
            store.put(
                [
                    example(f"turn {turn} text {n}", memory_id=f"m{n}", session=f"s{n % 9}", vector=vectors[n])
                    for n in range(500)
                ]
            )
            for n in range(turn % 7, 500, 7):
                store.forget(f"m{n}")
        held = {memory.memory_id: memory.text for memory in store.select()}
        assert len(held) == len(store) == 500 - len(range(59 % 7, 500, 7))
        assert all(text.startswith("turn 59 ") for text in held.values())
        assert store.stats().segments <= 12
        store.rebuild()
        assert {memory.memory_id: memory.text for memory in store.select()} == held
    assert _unsound(path) == []
    assert path.stat().st_size < 40_000_000
