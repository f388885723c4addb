"""A memory that is only changed is found by every read, however busy whoever changes it; read-modify-write loses
nothing; the doctor has no false alarms meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from rmem import Brain
from rmem.agents import AgentMemoryAPI, MemoryConfig
from rmem.doctor import examine
from rmem.errors import NotFoundError
from rmem.transfer import export, lines

UPDATE = """
import sys, time
from rmem import Brain
n = 0
with Brain(sys.argv[1], durability="normal") as brain:
    print("ready", flush=True)
    while True:
        n += 1
        for key in sys.argv[2].split(","):
            brain.update(key, text=f"the lighthouse keeper counts {n} ships", importance=(n % 10) / 10)
        if n % 50 == 0:
            brain.pin(sys.argv[2].split(",")[0], n % 100 == 0)
"""
TRIES = 20  # in the time of each, the updater changes something many times


@contextmanager
def updating(address, *keys):
    """Another process that does nothing but change some memories."""
    child = subprocess.Popen(
        [sys.executable, "-c", UPDATE, str(address), ",".join(keys)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        yield
        assert child.poll() is None, "the updater ended"
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    return tmp_path / "memories.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def test_recalls_and_lists_always_find_a_memory_that_is_being_changed(address):
    with Brain(address) as brain:
        brain.remember_many([{"text": f"unrelated note {n} about gardens", "id": f"n{n}"} for n in range(200)])
        brain.remember("the lighthouse keeper counts ships", id="busy")
        missed = {"lexical": 0, "hybrid": 0, "vector": 0, "list": 0, "filter": 0}
        with updating(address, "busy"):
            for _ in range(TRIES):
                for mode in ("lexical", "hybrid", "vector"):
                    hits = brain.recall("lighthouse keeper ships", k=3, mode=mode)
                    missed[mode] += "busy" not in {hit.memory.memory_id for hit in hits}
                missed["list"] += len(brain.memories(limit=None)) != 201
                missed["filter"] += len(brain.memories({"agent": "default"}, order="oldest", limit=None)) != 201
    assert set(missed.values()) == {0}, missed


def test_threads_that_recall_while_others_change_find_everything(tmp_path):
    """One index is shared by all threads: none may be shown rows that its snapshot does not have."""
    missed: list[str] = []
    with Brain(tmp_path / "memories.db", durability="normal") as brain:
        brain.remember_many([{"text": f"the lighthouse number {n}", "id": f"m{n}"} for n in range(20)])
        stop = threading.Event()

        def update():
            n = 0
            while not stop.is_set():
                n += 1
                brain.update(f"m{n % 20}", text=f"the lighthouse number {n}")

        def read():
            for _ in range(5 * TRIES):
                found = {hit.memory.memory_id for hit in brain.recall("lighthouse", k=50, mode="lexical")}
                if len(found) != 20:
                    missed.append(f"recalled {len(found)}")
                if len(brain.memories(limit=None)) != 20:
                    missed.append("listed")

        writers, readers = ([threading.Thread(target=work) for _ in range(3)] for work in (update, read))
        for thread in (*writers, *readers):
            thread.start()
        for thread in readers:
            thread.join(120)
        stop.set()
        for thread in (*writers, *readers):
            thread.join(60)
            assert not thread.is_alive()
    assert missed == []


@pytest.mark.parametrize("address", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_an_export_beside_a_busy_updater_has_every_memory(address, tmp_path):
    with Brain(address) as brain:
        brain.remember_many([{"text": f"note {n}", "id": f"n{n}", "session": f"s{n % 7}"} for n in range(1200)])
        keys = [f"n{n}" for n in range(0, 1200, 3)]
        with updating(address, *keys):
            for number in range(2):
                done = export(brain, tmp_path / f"{number}.jsonl")
                assert (done["memories"], done["left_out"]) == (1200, 0)
                told = (tmp_path / f"{number}.jsonl").read_text().splitlines()[1:]
                assert {json.loads(line)["memory_id"] for line in told} == {f"n{n}" for n in range(1200)}
            streamed = b"".join(lines(brain)).splitlines()
            assert len(streamed) == 1201


def test_what_is_forgotten_during_an_export_is_not_counted_as_left_out(tmp_path):
    with Brain(tmp_path / "memories.db") as brain:
        brain.remember_many([{"text": f"note {n}", "id": f"n{n}"} for n in range(2500)])
        done = export(brain, tmp_path / "out.jsonl", on_progress=lambda at, total: brain.forget("n2400"))
    assert (done["memories"], done["left_out"]) == (2499, 0)


def test_the_doctor_has_no_false_alarms_while_others_write(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path) as brain:
        brain.remember_many([{"text": f"note {n} of the harbour", "id": f"n{n}"} for n in range(2500)])
    with updating(path, *(f"n{n}" for n in range(0, 2500, 50))):
        for _ in range(3):
            assert [finding for finding in examine(path) if not finding.ok] == []


def test_pins_and_tags_of_two_writers_both_stay(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path, durability="normal") as brain, Brain(path, durability="normal") as other:
        brain.remember("much wanted", id="m")
        stop = threading.Event()

        def pin():
            pinned = False
            while not stop.is_set():
                pinned = not pinned
                other.pin("m", pinned)

        thread = threading.Thread(target=pin)
        thread.start()
        undone = 0
        for n in range(400):
            brain.update("m", tags={"n": str(n)})
            undone += brain.get("m").tags["n"] != str(n)
        stop.set()
        thread.join(60)
    assert undone == 0


def test_importance_fades_although_memories_vanish_meanwhile(tmp_path):
    path = tmp_path / "memories.db"
    with Brain(path) as brain, Brain(path) as other:
        for n in range(30):
            brain.remember(f"old {n}", id=f"m{n}", importance=0.8)
        traces = brain.store.traces

        def vanishing():
            for trace in list(traces()):
                if trace.memory_id in ("m3", "m29"):
                    other.forget(trace.memory_id)
                yield trace._replace(last_used=0.0)

        brain.store.traces = vanishing  # the real ones, with memories that go while they are worked through
        assert brain.decay_importance(0.5) == 28
        assert {memory.importance for memory in brain.memories()} == {0.4}
        with pytest.raises(NotFoundError):
            brain.pin("m3")


@pytest.mark.parametrize(
    "question", ["9999-12-31", "0001-01-01", "on 9999-12-31", "in the year 9999", "December 9999", "since 0001-01-01"]
)
def test_the_ends_of_time_are_questions_like_others(tmp_path, question):
    with Brain(tmp_path / "memories.db") as brain:
        brain.remember("the bridge was closed")
        assert isinstance(brain.recall(question), list)
        assert isinstance(brain.recall(question, settings={"time_words": "filter"}), list)


def test_an_agent_finds_the_states_that_another_process_changes_all_the_time(tmp_path):
    path = tmp_path / "memories.db"
    with AgentMemoryAPI(MemoryConfig(ltm_config={"path": str(path)})) as api:
        for step in range(30):
            api.store_agent_state("a", {"position": {"x": step, "y": 1}, "health": 1.0}, step_number=step)
        with Brain(path) as brain:
            keys = [memory.memory_id for memory in brain.memories(limit=None)]
        with updating(path, *keys[:5]):
            for _ in range(TRIES):
                assert len(api.retrieve_by_time_range("a", 0, 100)) == 30
                assert len(api.retrieve_similar_states("a", {"position": {"x": 3, "y": 1}, "health": 1.0}, k=30)) >= 25
