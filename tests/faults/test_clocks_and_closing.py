"""Clocks that run backwards, and stores that are used after they were closed."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from rmem import Brain
from rmem.doctor import examine
from rmem.errors import StoreClosedError
from rmem.stores.indexed import derive
from rmem.stores.memory import InMemoryRecordStore
from rmem.stores.sql.sqlite import SqliteRecordStore
from rmem.testing.contract import clustered_vectors, example


@pytest.fixture(params=["file", "memory"])
def address(request, tmp_path):
    return tmp_path / "memories.db" if request.param == "file" else ":memory:"


def test_a_clock_that_goes_backwards_loses_and_overwrites_nothing(address, monkeypatch, neighbours):
    clock = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with Brain(address) as brain:
        kept = []
        for number, step_back in enumerate([0, 3600, 0, 86_400 * 400, -10, 0, 50 * 365 * 86_400]):
            clock[0] -= step_back
            kept.append(brain.remember(f"entry number {number}", session="s", agent="a"))
        assert len({memory.memory_id for memory in kept}) == len(kept)
        assert [memory.step_number for memory in kept] == list(range(len(kept)))
        for memory in kept:
            assert brain.get(memory.memory_id).text == memory.text
        oldest = [memory.text for memory in brain.memories(order="oldest")]
        assert oldest == [m.text for m in sorted(kept, key=lambda m: (m.timestamp, m.step_number))]
        ids = [memory.memory_id for memory in kept]
        following = [after for _, after in neighbours(brain.store).values()]
        assert following == [*ids[1:], None], "neighbours follow the order of arrival, not the clock"
        assert {hit.memory.memory_id for hit in brain.recall("entry number", k=10)} == {m.memory_id for m in kept}
    if address != ":memory:":
        assert all(finding.ok for finding in examine(address))


def test_a_last_access_never_moves_back(address, monkeypatch):
    clock = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with Brain(address) as brain:
        memory = brain.remember("looked at often")
        clock[0] += 1000
        brain.recall("looked at often")
        clock[0] -= 500_000
        brain.recall("looked at often")
        found = brain.get(memory.memory_id)
        assert found.bookkeeping.retrieval_count == 2
        assert found.bookkeeping.last_access_time == 1_800_001_000.0
        brain.update(memory.memory_id, importance=0.9)
        assert brain.get(memory.memory_id).bookkeeping.creation_time == 1_800_000_000.0


def test_memories_of_the_past_and_future_keep_their_times(address):
    moments = [datetime(1905, 3, 1, 12), datetime(1969, 12, 31, 12), datetime(2001, 9, 9), datetime(2999, 1, 1)]
    with Brain(address) as brain:
        for moment in reversed(moments):
            brain.remember(f"what happened in {moment.year}", when=moment)
        assert [memory.text[-4:] for memory in brain.memories(order="oldest")] == ["1905", "1969", "2001", "2999"]
        assert [hit.text[-4:] for hit in brain.recall("what happened", until=moments[1])] in (
            ["1905", "1969"],
            ["1969", "1905"],
        )
        hits = brain.recall("what happened", since=moments[2] + timedelta(days=1))
        assert [hit.text[-4:] for hit in hits] == ["2999"]


def test_a_second_in_which_much_happens_gives_every_memory_its_own_id(address, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    with Brain(address) as brain:
        kept = [brain.remember("the same words", agent="a", step=7).memory_id for _ in range(30)]
        assert len(set(kept)) == 30
        assert kept[0] == "a-7-1800000000"
        assert len(brain.store) == 30


def test_closing_twice_is_harmless_and_use_after_closing_is_refused(address):
    brain = Brain(address)
    memory = brain.remember("last words")
    brain.close()
    brain.close()
    for use in (
        lambda: brain.remember("too late"),
        lambda: brain.remember_many([{"text": "too late"}]),
        lambda: brain.recall("last words"),
        lambda: brain.recall("last words", mode="lexical"),
        lambda: brain.get(memory.memory_id),
        lambda: brain.forget(memory.memory_id),
        lambda: brain.update(memory.memory_id, text="too late"),
        lambda: brain.memories(),
        lambda: brain.stats(),
    ):
        with pytest.raises(StoreClosedError, match="closed"):
            use()
    with pytest.raises(StoreClosedError), brain:
        brain.remember("too late")


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_every_method_of_a_closed_store_says_that_it_is_closed(tmp_path, kind):
    store = SqliteRecordStore(tmp_path / "m.db") if kind == "file" else InMemoryRecordStore()
    store.put([example("x", memory_id="m", vector=clustered_vectors(1, 16)[0])])
    store.touch(["m"], 2_000_000_000.0)
    store.close()
    store.close()
    for use in (
        lambda: store.put([example("y")]),
        lambda: store.add("k", example("y")),
        lambda: store.change("m", lambda memory: memory),
        lambda: store.get("m"),
        lambda: store.get_many(["m"]),
        lambda: store.forget("m"),
        lambda: store.select(),
        lambda: store.count(),
        lambda: store.match("x"),
        lambda: store.nearest(clustered_vectors(1, 16)[0]),
        lambda: store.search("x"),
        lambda: store.stats(),
        lambda: store.get_meta("k"),
        lambda: store.set_meta("k", "v"),
        lambda: store.memories_at([1]),
        lambda: len(store),
        lambda: list(store),
        lambda: "m" in store,
    ):
        with pytest.raises(StoreClosedError, match="closed"):
            use()


def test_access_counts_are_written_when_the_store_is_closed(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path) as brain:
        memory = brain.remember("read three times")
        for _ in range(3):
            brain.recall("read three times")
    with Brain(path) as brain:
        assert brain.get(memory.memory_id).bookkeeping.retrieval_count == 3
        brain.forget(memory.memory_id)
        again = brain.remember("read three times", id=memory.memory_id)
        assert brain.get(again.memory_id).bookkeeping.retrieval_count == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_access_counts_survive_a_transaction_that_fails(tmp_path, kind, request):
    where = tmp_path / "memories.db" if kind == "sqlite" else request.getfixturevalue("postgres_url")
    with Brain(where) as brain:
        memory = brain.remember("read three times", id="m")
        for _ in range(3):
            brain.recall("read three times")

        def fail(connection):
            another = example("another")
            brain.store.insert(connection, [another], [derive(another)])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            brain.store.write(fail)
    with Brain(where) as brain:
        assert brain.get(memory.memory_id).bookkeeping.retrieval_count == 3


def test_recalling_writes_nothing_while_it_answers(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path) as brain:
        brain.remember_many([{"text": f"pebble {n}"} for n in range(50)])
        before = (path.read_bytes(), (tmp_path / "memories.db-wal").read_bytes())
        for _ in range(20):
            brain.recall("pebble", k=10)
        assert (path.read_bytes(), (tmp_path / "memories.db-wal").read_bytes()) == before
