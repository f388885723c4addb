"""What is particular to the Redis store: many processes, servers that die and come back empty, namespaces, ids of any
form, and how much of Redis a memory takes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rmem import Filter
from rmem.embed import embedder_for
from rmem.errors import EmbedderMismatchError, StoreCorruptError, StoreUnreachableError, VectorError
from rmem.index import recall_index
from rmem.models import Embeddings
from rmem.stores import redis as redis_store
from rmem.stores.indexed import derive
from rmem.stores.redis import RedisRecordStore
from rmem.stores.vectors import EmbedderIdentity
from rmem.testing.contract import clustered_vectors, example
from rmem.testing.redis import RedisServer

CHILD = Path(__file__).with_name("redis_child.py")
ODD_AGENTS = ["a}b", "{", "}", "{}", "a{b}c", "a:b", "a:{b}:rows", "%7B", "{%", "ünï 北京 😀", "-1-2", "a-1-2", "a"]


def texts(store, **where):
    return sorted(memory.text for memory in store.select(Filter(**where)))


# Several processes


def test_two_processes_write_and_read_at_once(redis_server, open_store):
    children = [
        subprocess.Popen(
            [sys.executable, CHILD, str(redis_server.port), name, "40"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name in ("left", "right")
    ]
    told = []
    for child in children:
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err.decode()
        told.append(json.loads(out))
    ids = [memory_id for given in told for memory_id, _ in given]
    steps = [step for given in told for _, step in given]
    assert len(set(ids)) == 80
    assert sorted(steps) == list(range(80))
    store = open_store()
    assert sorted(store) == sorted(ids)
    for given in told:
        assert store.get(given[0][0]).contents["changes"] == 8, "a change by one process undid that of another"


def test_a_steady_handle_looks_once_and_never_at_half_an_agent(open_store):
    writer, reader = open_store(), open_store()
    writer.put([example("first", memory_id="m1", agent_id="ann"), example("other", memory_id="m2", agent_id="bob")])
    with reader.steady():
        assert texts(reader, agent="ann") == ["first"]
        writer.put([example("second", memory_id="m3", agent_id="ann")])
        assert texts(reader, agent="ann") == ["first"]
        assert texts(reader, agent="bob") == ["other"]
        with ThreadPoolExecutor(1) as thread:  # which is not steady, and shares what it has seen
            assert thread.submit(texts, reader, agent="ann").result() == ["first", "second"]
        assert texts(reader, agent="ann") == ["first", "second"]
        reader.clear()
        writer.put([example("anew", memory_id="m4", agent_id="ann")])
        assert texts(reader, agent="ann") == ["anew"]
    writer.put([example("last", memory_id="m5", agent_id="ann")])
    assert texts(reader, agent="ann") == ["anew", "last"]


def test_a_server_takes_another_port_if_its_own_is_taken_meanwhile():
    server = RedisServer()
    taken = server.port
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", taken))
        somebody.listen()
        with server, server.client() as client:
            assert server.port != taken
            assert client.ping()


def test_a_handle_follows_every_change_of_another(open_store):
    writer, reader = open_store(), open_store()
    kept = {}
    for number in range(120):
        writer.put([example(f"text {number}", memory_id=f"m{number}", agent_id=f"a{number % 3}")])
        kept[f"m{number}"] = f"text {number}"
        if number % 3 == 0 and number:
            writer.forget(f"m{number - 1}")
            kept.pop(f"m{number - 1}")
        if number % 4 == 0 and f"m{number // 2}" in kept:
            writer.put([example(f"again {number}", memory_id=f"m{number // 2}", agent_id=f"a{number // 2 % 3}")])
            kept[f"m{number // 2}"] = f"again {number}"
        if number % 10 == 0:
            assert {memory.memory_id: memory.text for memory in reader.select()} == kept
    assert {memory.memory_id: memory.text for memory in reader.select()} == kept


def test_a_reader_takes_in_only_what_changed(open_store, monkeypatch):
    writer, reader = open_store(), open_store()
    writer.put([example(f"text {number}", agent_id=f"a{number % 2}") for number in range(50)])
    assert len(reader) == 50
    read = []
    monkeypatch.setattr(redis_store.rows, "unpack", _recording(redis_store.rows.unpack, read))
    writer.put([example("new", agent_id="a0")])
    assert reader.count(Filter(agent="a1")) == 25
    assert read == [], "another agent's write is not read"
    assert reader.count(Filter(agent="a0")) == 26
    assert len(read) == 1
    assert reader.count() == writer.count() == 51
    assert len(read) == 1, "a writer does not read back what it wrote"


def _recording(function, calls):
    def recorded(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return recorded


def test_a_reader_asks_once_when_nothing_changed(open_store, monkeypatch):
    store = open_store()
    store.put([example("one", agent_id=f"a{number}") for number in range(5)])
    store.refresh()
    trips = []
    monkeypatch.setattr(store._link, "run", _recording(store._link.run, trips))
    store.filtered_rows(Filter(agent=["a1", "a3"]))
    assert len(trips) == 1
    store.filtered_rows(Filter())
    assert len(trips) == 2


def test_a_reader_that_missed_too_many_removals_reads_anew(open_store, monkeypatch):
    monkeypatch.setattr(redis_store, "_LISTED", 10)
    monkeypatch.setattr(redis_store, "_READ_AHEAD", 7)
    writer, reader = open_store(), open_store()
    writer.put([example(f"text {number}", memory_id=f"m{number}") for number in range(60)])
    assert len(reader) == 60
    for number in range(50):
        writer.forget(f"m{number}")
    assert texts(reader) == [f"text {number}" for number in range(50, 60)]
    assert texts(open_store()) == texts(reader)
    assert writer._link.run([("ZCARD", writer._keys.of("agent-1", "gone"))])[0] <= 20


def test_an_index_full_of_dead_rows_is_made_anew(open_store, monkeypatch):
    monkeypatch.setattr(recall_index, "_MANY_DEAD", 20)
    store = open_store()
    for number in range(200):
        store.put([example(f"version {number}", memory_id=f"m{number % 5}", session="s")])
        if number % 7 == 0:
            assert len(store) == min(number + 1, 5)
    assert store.index.size < 60
    assert texts(store) == [f"version {number}" for number in range(195, 200)]


def test_threads_share_a_store(open_store):
    store, barrier = open_store(), threading.Barrier(6)

    def work(number):
        barrier.wait()
        for at in range(15):
            store.put([example(f"thread {number}", agent_id=f"a{number % 2}")])
            assert len(store.match(f"{number}", Filter(agent=f"a{number % 2}"), k=1000)) >= at

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert len(store) == 90
    for agent in ("a0", "a1"):
        assert [memory.step_number for memory in store.select(Filter(agent=agent), order="step")] == list(range(45))


def test_readers_miss_nothing_while_the_index_is_made_anew(open_store, monkeypatch):
    monkeypatch.setattr(recall_index, "_MANY_DEAD", 10)
    store, done = open_store(), threading.Event()
    store.put([example(f"stone {number}", memory_id=f"m{number}") for number in range(8)])

    def rewrite():
        for number in range(150):
            store.put([example("stone again", memory_id=f"m{number % 8}")])
        done.set()

    with ThreadPoolExecutor(3) as pool:
        writer = pool.submit(rewrite)
        while not done.is_set():
            survey = store.filtered_rows(Filter(agent="agent-1"))
            assert survey.size == 8
        writer.result()
    before = store.filtered_rows(Filter()).seq.tolist()
    with store.index.lock:
        store._mirror.reset()
    assert len(store.memories_at(before)) == 8, "who holds a survey still finds its rows"


def test_neighbours_are_the_same_for_all(open_store, neighbours):
    writer, reader = open_store(), open_store()
    for number in range(6):
        writer.put([example(f"part {number}", memory_id=f"m{number}", session="s")])
    reader.refresh()
    writer.put([example("part 2 again", memory_id="m2", session="s")])
    writer.forget("m4")
    expected = {"m0": (None, "m1"), "m1": ("m0", "m2"), "m2": ("m1", "m3"), "m3": ("m2", "m5"), "m5": ("m3", None)}
    for store in (writer, reader, open_store()):
        assert neighbours(store) == expected


# Servers that lose what they had


def test_a_flushed_server_is_noticed(redis_server, open_store):
    writer, reader = open_store(), open_store()
    vectors = clustered_vectors(3, 16)
    writer.put([example(f"old {n}", memory_id=f"m{n}", vector=vector) for n, vector in enumerate(vectors)])
    epoch = reader.epoch("agent-1")
    assert len(reader) == 3
    redis_server.flush()
    assert reader.epoch("agent-1") is None
    assert len(reader) == len(writer) == 0
    assert reader.get("m1") is None
    writer.put([example("new", memory_id="m7", vector=clustered_vectors(1, 32)[0])])
    assert texts(reader) == texts(writer) == ["new"]
    assert reader.epoch("agent-1") != epoch
    assert reader.stats().dimension == writer.stats().dimension == 32


def test_rows_written_over_a_flush_are_complete(redis_server, open_store):
    """Nobody looked between the flush and the write, so that the writer had no chance to see it."""
    store = open_store()
    store.embedder_identity = EmbedderIdentity("an embedder", "its spec")
    vectors = clustered_vectors(2, 16)
    store.put([example("old", vector=vectors[0])])
    redis_server.flush()
    store.put([example("new", vector=vectors[1])])
    assert texts(store) == texts(open_store()) == ["new"]
    assert store.get_meta("embedder") == "an embedder"
    assert store.get_meta("dimension") == "16"


def test_a_server_that_dies_is_reported_and_used_again_when_it_is_back():
    with RedisServer() as server, RedisRecordStore(**server.connection()) as store:
        store.put([example("before", memory_id="m")])
        assert len(store) == 1
        server.kill()
        calls = [
            lambda: store.put([example("meanwhile")]),
            lambda: store.get("m"),
            lambda: store.select(),
            lambda: store.match("before"),
            lambda: store.forget("m"),
            lambda: store.change("m", lambda memory: memory),
            lambda: store.move(["m"], "im"),
            lambda: store.get_meta("colour"),
            lambda: store.epoch("agent-1"),
            lambda: store.stats(),
        ]
        for call in calls:
            with pytest.raises(StoreUnreachableError, match=f"127.0.0.1:{server.port} cannot be reached"):
                call()
        store.touch(["m"], 1_800_000_000.0)  # never disturbs a reader
        server.start()
        assert len(store) == 0
        assert store.put([example("after")])[0].step_number == 0
        assert texts(store) == ["after"]


def test_a_server_that_is_not_there_yet_is_found_later():
    server = RedisServer()
    with RedisRecordStore(**server.connection()) as store:
        with pytest.raises(StoreUnreachableError):
            store.select()
        with server:
            store.put([example("here")])
            assert texts(store) == ["here"]


def test_a_server_that_lost_its_last_writes_is_read_anew():
    """A restart from an older copy of the data keeps the epoch, and its clock may pass what was seen."""
    with RedisServer(keep=True) as server, RedisRecordStore(**server.connection()) as reader:
        with RedisRecordStore(**server.connection()) as writer:
            writer.put([example("kept", memory_id="m0")])
            copy = server.folder / "appendonly.aof"
            saved = copy.read_bytes()
            writer.put([example("lost 1", memory_id="m1"), example("lost 2", memory_id="m2")])
        assert texts(reader) == ["kept", "lost 1", "lost 2"]
        epoch = reader.epoch("agent-1")
        server.kill()
        copy.write_bytes(saved)
        server.start()
        with RedisRecordStore(**server.connection()) as writer:
            writer.put([example(f"new {number}", memory_id=f"n{number}") for number in range(2)])
        assert texts(reader) == ["kept", "new 0", "new 1"]
        assert reader.epoch("agent-1") != epoch


def test_access_counts_wait_for_a_server_that_is_away():
    with RedisServer(keep=True) as server, RedisRecordStore(**server.connection()) as store:
        store.put([example("often read", memory_id="m")])
        store.touch(["m"], 1_800_000_000.0)
        server.kill()
        with pytest.raises(StoreUnreachableError):
            store.flush()
        store.touch(["m"], 1_800_000_001.0)
        server.start()
        store.flush()
        with RedisRecordStore(**server.connection()) as other:
            found = other.get("m")
        assert (found.bookkeeping.retrieval_count, found.bookkeeping.last_access_time) == (2, 1_800_000_001.0)


def test_a_cluster_that_lost_a_node_is_used_again_when_it_is_back(redis_cluster):
    with RedisRecordStore(**redis_cluster.connection(socket_timeout=1.0)) as store:
        agents = [f"agent {number}" for number in range(12)]
        store.put([example("here", agent_id=agent) for agent in agents])
        assert len(store) == 12
        node = redis_cluster.nodes[2]
        node.kill()
        with pytest.raises(StoreUnreachableError, match="cannot be reached"):
            store.select()
        node.start()
        redis_cluster.wait()
        assert 0 < len(store) < 12, "the other nodes kept theirs"
        store.put([example("again", agent_id=agent) for agent in agents])
        assert texts(store).count("again") == 12


# Names


def test_namespaces_never_see_each_other(redis_server, open_store):
    names = ["one", "two", "one:agents", "o{n}e", "one:{agent-1}"]
    stores = [open_store(namespace=name) for name in names]
    for name, store in zip(names, stores, strict=True):
        store.put([example(f"secret of {name}", memory_id="m")])
        store.set_meta("colour", name)
    for name, store in zip(names, stores, strict=True):
        assert texts(store) == [f"secret of {name}"]
        assert store.get("m").text == f"secret of {name}"
        assert store.get_meta("colour") == name
        assert store.stats().memories == 1
    assert stores[0].forget("m")
    assert len(stores[0]) == 0
    assert len(stores[1]) == 1
    with redis_server.client() as client:
        assert all(key.startswith((b"one", b"two", b"o%7Bn%7De")) for key in client.scan_iter())


@pytest.mark.parametrize("kind", ["plain", "cluster"])
def test_agents_may_have_any_name(request, kind):
    server = request.getfixturevalue("redis_server" if kind == "plain" else "redis_cluster")
    with RedisRecordStore(**server.connection()) as store, RedisRecordStore(**server.connection()) as other:
        kept = store.put([example(f"of {agent}", agent_id=agent) for agent in ODD_AGENTS])
        kept += store.put([example(f"more of {agent}", agent_id=agent) for agent in ODD_AGENTS])
        assert len({memory.memory_id for memory in kept}) == 2 * len(ODD_AGENTS)
        for agent in ODD_AGENTS:
            assert texts(other, agent=agent) == sorted([f"of {agent}", f"more of {agent}"])
        for memory in kept:
            assert other.get(memory.memory_id).text == memory.text
        assert other.stats().by_agent == dict.fromkeys(ODD_AGENTS, 2)
        assert store.forget_many([memory.memory_id for memory in kept]) == len(kept)
        assert len(other) == 0


def test_an_id_belongs_to_one_agent(open_store):
    store, other = open_store(), open_store()
    store.put([example("first", memory_id="m", agent_id="a")])
    other.put([example("second", memory_id="m", agent_id="b")])
    assert texts(store) == texts(other) == ["second"]
    assert store.get("m").agent_id == "b"
    kept = store.put([example(text, memory_id="m", agent_id=agent) for text, agent in (("x", "a"), ("y", "b"))])
    assert [memory.text for memory in kept] == ["x", "y"]
    assert texts(store) == texts(other) == ["y"]
    assert other.forget("m")
    assert texts(store) == []


def test_an_id_of_another_agents_form_is_never_given_twice(open_store):
    store = open_store()
    store.put([example("guest", memory_id="a-5-1700000000", agent_id="b")])
    mine = store.put([example("mine", agent_id="a", step_number=5)])[0]
    assert mine.memory_id == "a-5-1700000000-2"
    assert texts(store) == ["guest", "mine"]
    store.put([example("come home", memory_id="a-5-1700000000", agent_id="a")])
    assert texts(store) == ["come home", "mine"]
    assert store.get("a-5-1700000000").agent_id == "a"
    assert open_store().get("a-5-1700000000").text == "come home"


@pytest.mark.parametrize(
    "contents", [{"text": None, "n": 1}, {"n": 1}, {"text": [None]}, {"text": "words", "n": 1}, {}]
)
def test_contents_come_back_with_or_without_a_text_of_their_own(open_store, contents):
    memory = example("words", memory_id="m")
    memory.contents = contents
    open_store().put([memory])
    assert open_store().get("m").contents == contents


def test_steps_are_exact_however_large(open_store):
    store = open_store()
    store.put([example("far", step_number=2**60 + 1)])
    assert store.put([example("next")])[0].step_number == 2**60 + 2
    assert store.put([example("and next")])[0].step_number == 2**60 + 3


def test_steps_go_on_when_memories_have_left(open_store):
    store = open_store()
    kept = store.put([example(f"state {number}") for number in range(5)])
    store.forget_many([memory.memory_id for memory in kept])
    assert store.put([example("the next")])[0].step_number == 5


def test_many_memories_of_one_second_have_ids_of_their_own(open_store):
    store = open_store()
    kept = [store.put([example("same", step_number=1)])[0] for _ in range(40)]
    kept += store.put([example("same", step_number=1) for _ in range(40)])
    assert sorted(memory.memory_id for memory in kept) == sorted(
        ["agent-1-1-1700000000", *(f"agent-1-1-1700000000-{number}" for number in range(2, 81))]
    )


# What is kept


def test_moving_between_tiers_is_seen_by_all(open_store):
    store, other = open_store(), open_store()
    vectors = clustered_vectors(6, 64)
    store.put([example(f"state {n}", memory_id=f"m{n}", vector=vector) for n, vector in enumerate(vectors)])
    other.refresh()
    assert store.move([f"m{n}" for n in range(4)] + ["missing"], "im") == 4
    assert store.move(["m0"], "ltm") == 1
    assert store.move(["m3"], "stm", {"m3": vectors[3]}) == 1
    for reader in (store, other, open_store()):
        assert texts(reader, tier="stm") == ["state 3", "state 4", "state 5"]
        assert texts(reader, tier="im") == ["state 1", "state 2"]
        assert texts(reader, tier="ltm") == ["state 0"]
        assert reader.get("m1").embeddings.compressed_vector is not None
        assert np.array_equal(reader.get("m3").embeddings.full_vector, vectors[3])
        assert reader.nearest(vectors[0], k=1)[0][0].memory_id == "m0"
        assert reader.nearest(vectors[1], k=1)[0][0].memory_id == "m1"


def test_access_counts_survive_and_travel(open_store):
    store = open_store()
    store.put([example("read", memory_id="m")])
    store.touch(["m"], 1_800_000_000.0)
    store.touch(["m"], 1_800_000_005.0)
    store.close()
    other = open_store()
    found = other.get("m")
    assert (found.bookkeeping.retrieval_count, found.bookkeeping.last_access_time) == (2, 1_800_000_005.0)
    found.bookkeeping.retrieval_count = 7
    other.put([found])
    assert open_store().get("m").bookkeeping.retrieval_count == 7, "a copy from the archive brings its counts"
    other.touch(["m"], 1_800_000_006.0)
    other.put([other.get("m")])
    assert open_store().get("m").bookkeeping.retrieval_count == 8
    other.forget("m")
    assert other.put([example("again", memory_id="m")])[0].bookkeeping.retrieval_count == 0
    assert other.get("m").bookkeeping.retrieval_count == 0


def test_vectors_of_another_embedder_are_refused(open_store):
    first, second = open_store(), open_store()
    vectors = clustered_vectors(2, 16)
    first.embedder_identity, second.embedder_identity = EmbedderIdentity("one", None), EmbedderIdentity("another", None)
    first.put([example("mine", vector=vectors[0])])
    with pytest.raises(EmbedderMismatchError, match="'one'"):
        second.put([example("yours", vector=vectors[1])])
    with pytest.raises(VectorError, match="16 numbers"):
        open_store().put([example("longer", vector=clustered_vectors(1, 32)[0])])
    assert texts(first) == ["mine"]


def test_terms_of_an_older_analyser_are_derived_again(open_store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(redis_store.rows, "ANALYSER", 200)
        patch.setattr(redis_store.rows, "derive", _nothing_found)
        patch.setattr(redis_store, "derive", _nothing_found)
        open_store().put([example("zebra crossing", memory_id="m")])
    assert [memory.memory_id for memory, _ in open_store().match("zebra")] == ["m"]


def _nothing_found(memory):
    return derive(example("-"))


def test_values_that_are_no_memories_are_reported(redis_server, open_store):
    store = open_store()
    store.put([example("sound", memory_id="m")])
    with redis_server.client() as client:
        client.hset("remanence:{agent-1}:rows", "m", "something else")
    with pytest.raises(StoreCorruptError, match="another program"):
        store.get("m")
    with redis_server.client() as client:
        client.hset("remanence:{agent-1}:rows", "m", b"1 0\n\x01\x01damaged")
    with pytest.raises(StoreCorruptError, match=r"'m'.*damaged"):
        open_store().select()


def test_a_small_state_takes_no_more_than_3_kb(redis_server, open_store):
    rng = np.random.default_rng(5)
    embedder = embedder_for("static")
    store = open_store()
    with redis_server.client() as client:
        store.set_meta("warm", "up")
        before = client.info("memory")["used_memory"]
        states = []
        for number in range(1000):
            x, y, wood, stone = (int(value) for value in rng.integers(0, 100, 4))
            contents = {"position": [x, y], "health": 0.85, "inventory": {"wood": wood, "stone": stone}}
            state = example(
                json.dumps(contents), step_number=number, memory_type="state", position=(float(x), float(y))
            )
            state.contents = contents
            states.append(state)
        for state, vector in zip(states, embedder.embed([state.text for state in states]), strict=True):
            state.embeddings = Embeddings(full_vector=vector)
        store.put(states)
        taken = client.info("memory")["used_memory"] - before
    assert len(vector) == 256
    assert taken / 1000 <= 3 * 1024
    assert store.stats().bytes / 1000 <= 3 * 1024
