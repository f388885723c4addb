"""What holds a constant number of memories stays of a constant size, however much it is written to."""

from __future__ import annotations

import gc
import logging
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rmem import Brain
from rmem.doctor import examine
from rmem.stores.sql import cache
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example

LIVE = 100
VECTORS = clustered_vectors(LIVE, 64)


def memory(n: int, version: int):
    return example(f"memory {n} in version {version}", memory_id=f"m{n}", vector=VECTORS[n], tags={"n": str(n)})


def sizes(path: Path) -> dict[str, int]:
    connection = sqlite3.connect(path)
    told = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in ("memories", "changes", "access", "segments", "staged", "trash")
    }
    (told["rows in segments"],) = connection.execute("SELECT coalesce(sum(rows), 0) FROM segments").fetchone()
    # The audit log tells of every removal and is meant to grow.
    (audited,) = connection.execute(
        "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN ('audit', 'audit_memory')"
    ).fetchone()
    connection.close()
    return told | {"bytes": sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*")) - audited}


def churn(store: SqliteRecordStore, rounds: int, first: int = 0) -> None:
    """Change every memory, move a few, replace a few, recall a few; the number of live ones stays."""
    for version in range(first, first + rounds):
        for n in range(LIVE):
            if n % 10 == 3:
                store.forget(f"m{n}")
                store.put([memory(n, version)])
            elif n % 10 == 7:
                store.move([f"m{n}"], ("im", "stm")[version % 2], {f"m{n}": VECTORS[n]})
            else:
                store.change(f"m{n}", lambda _, n=n, version=version: memory(n, version))
        store.touch([f"m{n}" for n in range(0, LIVE, 9)], 1_700_000_000.0 + version)
        if version % 10 == 0:
            assert len(store.match("memory", k=1000)) == LIVE


@pytest.fixture
def short_logs(monkeypatch):
    """Everything that is cleared away when there is much of it is so much earlier."""
    monkeypatch.setattr(cache, "SEGMENT_FROM", 256)
    monkeypatch.setattr(cache, "CHANGES_FROM", 1024)
    monkeypatch.setattr(cache, "CHANGES_KEPT", 512)
    monkeypatch.setattr("rmem.index.recall_index._MANY_DEAD", 512)


def test_updates_at_a_constant_size_leave_a_constant_file_and_index(tmp_path, short_logs):
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path, durability="normal") as store, SqliteRecordStore(path, durability="normal") as other:
        store.put([memory(n, 0) for n in range(LIVE)])
        other.refresh()
        churn(store, 15)
        early = sizes(path)
        churn(store, 15, first=15)
        late = sizes(path)
        assert late["memories"] == LIVE
        assert late["changes"] <= cache.CHANGES_KEPT + cache.CHANGES_FROM + 2 * cache.SEGMENT_FROM
        assert late["rows in segments"] <= LIVE
        assert late["access"] <= LIVE
        assert late["bytes"] < 1.3 * early["bytes"] + 100_000
        assert len(other.match("memory", k=1000)) == LIVE, "a process that comes late reads its index anew"
        for one in (store, other):
            one.refresh()
            assert one.index.size < 2500, "dead rows are taken out of memory as well"
    with SqliteRecordStore(path) as fresh:
        assert len(fresh.match("memory", k=1000)) == LIVE
        assert fresh.index.size <= LIVE + 2 * cache.SEGMENT_FROM
    assert [finding for finding in examine(path) if not finding.ok] == []


def test_tier_moves_alone_leave_a_short_change_log(tmp_path, short_logs):
    path = tmp_path / "memories.db"
    keys = [f"m{n}" for n in range(LIVE)]
    with SqliteRecordStore(path, durability="normal") as store:
        store.put([memory(n, 0) for n in range(LIVE)])
        for number in range(40):
            store.move(keys, ("im", "ltm")[number % 2])
        assert sizes(path)["changes"] <= cache.CHANGES_KEPT + cache.CHANGES_FROM + 2 * cache.SEGMENT_FROM
        assert {one.tier for one in store.select()} == {"ltm"}
    with SqliteRecordStore(path) as fresh:
        assert {one.tier for one in fresh.select()} == {"ltm"}


def test_the_write_ahead_log_is_cut_once_a_long_reader_is_gone(tmp_path, caplog):
    path = tmp_path / "memories.db"
    log = Path(f"{path}-wal")
    with SqliteRecordStore(path, durability="normal") as store, SqliteRecordStore(path) as reader:
        store.put([memory(n, 0) for n in range(LIVE)])

        def read_slowly():
            assert reader.count() == LIVE
            churn(store, 60, first=1)
            assert len(reader.match("version 0", k=1000)) == LIVE
            return log.stat().st_size

        with caplog.at_level(logging.WARNING):
            grown = reader.read_transaction(read_slowly)
        assert grown > 20 << 20
        assert "kept the write-ahead log" in caplog.text
        churn(store, 15, first=61)
        assert log.stat().st_size <= 9 << 20


def test_processes_that_write_all_the_time_leave_each_other_a_chance(tmp_path):
    """Six of them, on a disk that takes its time: each gets its turn."""
    path = tmp_path / "memories.db"
    Brain(path).close()
    script = (
        "import sqlite3, sys, time\n"
        "from rmem import Brain\n"
        "from rmem.stores.sql.file import SqliteFile\n"
        "class Slow(sqlite3.Connection):\n"
        "    def execute(self, sql, *values):\n"
        "        done = super().execute(sql, *values)\n"
        "        if sql == 'BEGIN IMMEDIATE': time.sleep(0.05)\n"  # what a slow fsync costs while the lock is held
        "        return done\n"
        "connect = sqlite3.connect\n"
        "sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Slow)\n"
        "worst = 0.0\n"
        "with Brain(sys.argv[1]) as brain:\n"
        "    until = time.monotonic() + 4\n"
        "    n = 0\n"
        "    while time.monotonic() < until:\n"
        "        began = time.monotonic()\n"
        "        brain.remember(f'by {sys.argv[2]} {n}')\n"
        "        worst = max(worst, time.monotonic() - began)\n"
        "        n += 1\n"
        "print(n, worst)\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(6)
    ]
    told = [child.communicate(timeout=120)[0].split() for child in children]
    assert [child.returncode for child in children] == [0] * 6
    counts, worst = [int(one[0]) for one in told], [float(one[1]) for one in told]
    assert min(counts) >= 3, (counts, worst)
    with Brain(path) as brain:
        assert len(brain.memories(limit=None)) == sum(counts)


@pytest.mark.slow
def test_two_million_operations_at_a_constant_size_level_off(tmp_path):
    """File, memory, the time to open and the time to recall, a quarter of the way in and at the end."""
    path = tmp_path / "memories.db"
    process = psutil.Process(os.getpid())
    told = []
    rounds = int(os.environ.get("SOAK_OPERATIONS", "2000000")) // LIVE
    with SqliteRecordStore(path, durability="normal") as store:
        store.put([memory(n, 0) for n in range(LIVE)])
        for quarter in range(4):
            churn(store, rounds // 4, first=quarter * rounds // 4)
            gc.collect()
            began = time.process_time()
            with SqliteRecordStore(path, durability="normal") as fresh:
                assert len(fresh.match("memory", k=1000)) == LIVE
            opened = time.process_time() - began
            began = time.process_time()
            for _ in range(20):
                store.match("memory 7", k=5)
            recalled = (time.process_time() - began) / 20
            told.append((sizes(path), process.memory_info().rss, opened, recalled))
            print(f"{(quarter + 1) * rounds // 4 * LIVE:,} operations: {told[-1]}", flush=True)
    first, last = told[0], told[-1]
    assert last[0]["bytes"] < 1.5 * first[0]["bytes"] + 1_000_000
    assert last[1] < 1.3 * first[1] + (50 << 20)
    assert last[2] < 3 * first[2] + 0.1
    assert last[3] < 3 * first[3] + 0.005
    assert [finding for finding in examine(path) if not finding.ok] == []
