"""Several processes and threads use one file at the same time."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
import time

import pytest
from fault_children import run, start, word

from rmem import Brain
from rmem.doctor import examine
from rmem.errors import StoreBusyError
from rmem.stores.sql import cache
from rmem.stores.sql.file import APPLICATION_ID
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example


def _ask(child, order):
    child.stdin.write(order + "\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())[0]


def test_two_processes_of_eight_threads_write_while_others_read(tmp_path):
    path, each, threads = tmp_path / "memories.db", 12, 8
    children = [start("write_with_threads", path, name, threads, each) for name in (1, 2)]
    counts: list[int] = []
    with Brain(path) as reader:
        while any(child.poll() is None for child in children):
            counts.append(len(reader.store))
            for hit in reader.recall("written beside others", k=10):
                assert hit.text.endswith("written beside others")
            time.sleep(0.01)
        answers = [child.communicate() for child in children]
        assert [child.returncode for child in children] == [0, 0], answers
        acknowledged = [json.loads(line) for out, _ in answers for line in out.splitlines()]
        assert len(acknowledged) == 2 * threads * each
        assert all(found_at_once for *_, found_at_once in acknowledged)
        assert counts == sorted(counts), "a reader saw memories vanish"
        ids = [memory_id for memory_id, *_ in acknowledged]
        assert len(set(ids)) == len(ids)
        assert sorted(step for _, step, *_ in acknowledged) == list(range(len(ids)))
        assert len(reader.store) == len(ids)
        for memory_id, step, token, _ in acknowledged:
            found = reader.store.match(token)
            assert [(memory.memory_id, memory.step_number) for memory, _ in found] == [(memory_id, step)]
    assert all(finding.ok for finding in examine(path))


def test_what_one_process_returned_the_other_finds_at_once(tmp_path):
    path = tmp_path / "memories.db"
    child = start("obey", path)
    assert json.loads(child.stdout.readline()) == ["ready"]
    with Brain(path) as brain:
        for number in range(25):
            theirs = _ask(child, f"remember {word(1, number)} from the child")
            assert [hit.memory.memory_id for hit in brain.recall(word(1, number), mode="lexical")] == [theirs]
            mine = brain.remember(f"{word(2, number)} from the parent").memory_id
            assert _ask(child, f"recall {word(2, number)}") == [mine]
            if number % 5 == 0:
                assert _ask(child, f"forget {mine}") is True
                assert brain.get(mine) is None
                assert brain.recall(word(2, number), mode="lexical") == []
            if number % 5 == 1:
                brain.update(theirs, text=f"parcel {number} was renamed {word(3, number)}")
                assert _ask(child, f"recall {word(3, number)}") == [theirs]
    child.stdin.close()
    assert child.wait(30) == 0


def test_processes_that_open_a_file_at_the_same_moment_all_succeed(tmp_path):
    """New files, an empty one, and files that have a schema table and nothing in it, as old files will."""
    paths = [tmp_path / f"new-{number}.db" for number in range(6)]
    paths.append(tmp_path / "empty.db")
    paths[-1].touch()
    for number in range(4):
        paths.append(tmp_path / f"old-{number}.db")
        with sqlite3.connect(paths[-1]) as plain:
            plain.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            plain.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        plain.close()
    children = [start("open_at_once", *paths, stderr=subprocess.PIPE) for _ in range(4)]
    for path in paths:
        for child in children:
            assert json.loads(child.stdout.readline() or "0") == ["ready"], child.stderr.read()[-800:]
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        ids = set()
        for child in children:
            answer = child.stdout.readline()
            assert answer, f"{path.name}: {child.stderr.read()[-800:]}"
            ids.add(json.loads(answer)[0])
        assert len(ids) == len(children)
        with SqliteRecordStore(path) as store:
            assert {memory.memory_id for memory in store.select()} == ids
        assert all(finding.ok for finding in examine(path))
    for child in children:
        child.communicate(timeout=30)


def test_threads_share_one_store_with_settling_changing_and_forgetting(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "SETTLE_FROM", 16)
    vectors = clustered_vectors(400, 16)
    expected: list[dict[str, str]] = [{} for _ in range(8)]
    errors: list[BaseException] = []
    with SqliteRecordStore(tmp_path / "memories.db", durability="normal") as store:

        def work(thread: int) -> None:
            try:
                mine = expected[thread]
                for number in range(40):
                    key, token = f"t{thread}-{number}", word(thread, number)
                    store.put(
                        [example(token, memory_id=key, session=f"s{thread}", vector=vectors[40 * thread + number])]
                    )
                    mine[key] = token
                    if number % 4 == 3:
                        gone = f"t{thread}-{number - 2}"
                        assert store.forget(gone)
                        del mine[gone]
                    if number % 5 == 4:
                        again = f"t{thread}-{number - 3}"
                        if again in mine:
                            store.put([example(f"{token}q", memory_id=again, session=f"s{thread}")])
                            mine[again] = f"{token}q"
                    assert [memory.memory_id for memory, _ in store.match(token)] == [key]
                    assert store.nearest(vectors[40 * thread + number], k=1)[0][1] > 0.999
                    assert store.count() >= len(mine)
            except BaseException as error:
                errors.append(error)

        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert errors == []
        everything = {key: word for mine in expected for key, word in mine.items()}
        assert {memory.memory_id: memory.text for memory in store.select()} == everything
        assert store.stats().segments > 0
    with SqliteRecordStore(tmp_path / "memories.db") as again:
        assert {memory.memory_id: memory.text for memory in again.select()} == everything
    assert all(finding.ok for finding in examine(tmp_path / "memories.db"))


def test_threads_that_share_a_transaction_fail_alone(tmp_path):
    """One writer's refusal must not undo what others wrote in the same commit."""
    outcomes: list[str] = []
    with SqliteRecordStore(tmp_path / "memories.db") as store:
        store.put([example("base", memory_id="base")])

        def refuse(memory):
            raise RuntimeError("no")

        def work(thread: int) -> None:
            for number in range(20):
                if thread % 2:
                    store.put([example(f"t{thread} n{number}", agent_id=f"a{thread}")])
                    outcomes.append("kept")
                else:
                    with pytest.raises(RuntimeError, match="no"):
                        store.change("base", refuse)
                    outcomes.append("refused")

        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert outcomes.count("kept") == outcomes.count("refused") == 80
        assert len(store) == 81
        assert store.get("base").text == "base"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_when_the_thread_that_commits_for_others_ends_the_others_are_written_all_the_same(tmp_path, kind, request):
    where = tmp_path / "memories.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with Brain(where, embedder="none") as brain:
        brain.remember("held", id="held")
        entered, release, ended, kept = threading.Event(), threading.Event(), [], []

        def hold(memory):
            entered.set()
            release.wait(30)
            return memory

        def end(memory):
            raise SystemExit

        def lead() -> None:
            try:
                brain.store.change("held", end)
            except BaseException as error:
                ended.append(type(error))

        def write(number: int) -> None:
            kept.append(brain.remember(f"follower {number}", id=f"f{number}").memory_id)

        first = threading.Thread(target=brain.store.change, args=("held", hold))
        first.start()
        assert entered.wait(30)
        others = [threading.Thread(target=lead)]
        others += [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in others:
            thread.start()
            time.sleep(0.05)  # so that they wait in this order
        release.set()
        for thread in (first, *others):
            thread.join(60)
        assert ended == [SystemExit]
        assert sorted(kept) == ["f0", "f1", "f2", "f3"]
        assert all(memory is not None for memory in brain.store.get_many(kept))


def test_a_store_closed_under_its_writers_keeps_what_it_acknowledged(tmp_path):
    for attempt in range(3):
        path = tmp_path / f"{attempt}.db"
        [(kept, met)] = run("close_under_writers", path)
        assert met == ["StoreClosedError"]
        with SqliteRecordStore(path) as store:
            assert None not in store.get_many(kept)
        assert all(finding.ok for finding in examine(path))


def test_a_writer_that_cannot_get_the_lock_says_so_and_works_afterwards(tmp_path):
    path = tmp_path / "memories.db"
    with SqliteRecordStore(path, busy_timeout=0.2) as store:
        store.put([example("anchor", memory_id="m1")])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match=r"memories\.db"):
            store.put([example("during", memory_id="m2")])
        with pytest.raises(StoreBusyError):
            store.forget("m1")
        assert [memory.text for memory, _ in store.match("anchor")] == ["anchor"], "reading needs no lock"
        assert store.get("m2") is None
        other.execute("ROLLBACK")
        other.close()
        store.put([example("buoy", memory_id="m2")])
        assert [memory.text for memory in store.select()] == ["anchor", "buoy"]


def test_closing_after_a_recall_does_not_wait_for_another_writer(tmp_path):
    path = tmp_path / "memories.db"
    store = SqliteRecordStore(path, busy_timeout=3600)
    store.put([example("anchor", memory_id="m1")])
    store.touch(["m1"], 2_000_000_000.0)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.close()  # would hang for an hour
    other.execute("ROLLBACK")
    other.close()
    with SqliteRecordStore(path) as again:
        assert again.get("m1").text == "anchor"
