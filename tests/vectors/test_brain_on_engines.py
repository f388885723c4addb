"""A Brain whose neighbours are looked for by an engine: the same answers as without it, whatever happens to it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from vector_engines import ENGINES, pgvector_address

from rmem import Brain, Encryption, EnhancedAgentMemory, admin
from rmem.errors import ConfigError, InputError, StoreUnreachableError
from rmem.index import filtered_rows
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing.contract import clustered_vectors
from rmem.vectors import engine_rows
from rmem.vectors.base import Fields
from rmem.vectors.memory import MemoryIndex

SIZE = 400
VECTORS = clustered_vectors(SIZE, 16, seed=5)
QUESTIONS = clustered_vectors(6, 16, seed=8)
FILTERS = (
    None,
    {"agent": "agent-1"},
    {"type": "odd", "agent": ["agent-0", "agent-2"]},
    {"tags": {"repo": "r1"}},
    {"since": 1_700_000_100, "until": 1_700_000_300, "tags": {"repo": "r2"}},
)


def items(start=0, end=SIZE):
    return [
        {
            "text": f"memory number {n}",
            "id": f"m-{n}",
            "agent": f"agent-{n % 3}",
            "type": "odd" if n % 2 else "even",
            "session": f"s-{n % 5}",
            "tags": {"repo": f"r{n % 4}"},
            "when": 1_700_000_000 + n,
            "vector": VECTORS[n],
        }
        for n in range(start, end)
    ]


class Failing(MemoryIndex):
    """A real index that can be switched off, as a server can."""

    name = "failing"
    down = False
    asked = 0

    def _check(self):
        if self.down:
            raise StoreUnreachableError("failing does not answer")

    def upsert(self, *args):
        self._check()
        super().upsert(*args)

    def delete(self, *args):
        self._check()
        super().delete(*args)

    def search(self, *args):
        self._check()
        self.asked += 1
        return super().search(*args)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    """Below some thousand rows a Brain compares all of them; the engines are what is tested here."""
    monkeypatch.setattr(engine_rows, "MIN_ROWS", 100)
    monkeypatch.setattr(filtered_rows, "_FIRST", 48)


def nearest(brain, vector, where=None, k=10):
    return [hit.id for hit in brain.recall("x", k, where, mode="vector", vector=vector)]


def expected(vector, where=None, k=10, known=SIZE):
    with Brain(":memory:", embedder="none") as plain:
        plain.remember_many(items(0, known))
        return nearest(plain, vector, where, k)


@pytest.fixture(scope="module")
def plain():
    with Brain(":memory:", embedder="none") as brain:
        brain.remember_many(items())
        yield brain


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_answers_of_the_store(engine, engine_index, tmp_path, plain):
    index = engine_index(engine)
    asked = []
    search = index.search
    index.search = lambda *args: asked.append(1) or search(*args)
    with Brain(tmp_path / "m.db", embedder="none", vectors=index) as brain:
        brain.remember_many(items())
        for vector in QUESTIONS:
            for where in FILTERS:
                assert nearest(brain, vector, where) == nearest(plain, vector, where), (engine, where)
        assert asked
        gone = [f"m-{n}" for n in range(0, SIZE, 7)]
        brain.forget(where={"type": "odd", "agent": "agent-1"})
        for key in gone:
            brain.forget(key)
        brain.update("m-5", text="changed", vector=-VECTORS[5])
        left = [item["id"] for item in items() if brain.get(item["id"]) is not None]
        assert index.count() in (len(left), len(left) - 1, None)  # the update may be on its way
        assert nearest(brain, -VECTORS[5], k=1) == ["m-5"]
        assert set(nearest(brain, QUESTIONS[0], k=SIZE)) == set(left)
        assert index.count() in (len(left), None)


def test_postgresql_asks_the_engine_for_large_tenants(postgres_url, plain):
    index = Failing()
    store = PostgresRecordStore(postgres_url, held_up_to=10)
    with Brain(store, embedder="none", vectors=index) as brain:
        brain.remember_many(items())
        for vector in QUESTIONS:
            for where in FILTERS:
                assert nearest(brain, vector, where) == nearest(plain, vector, where), where
        assert index.asked
        brain.remember("the newest", id="new", vector=QUESTIONS[0])
        assert nearest(brain, QUESTIONS[0])[0] == "new"  # before the engine has it
        brain.forget("new")
        index.down = True
        assert nearest(brain, QUESTIONS[1]) == nearest(plain, QUESTIONS[1])


def test_hybrid_recall_is_the_same_with_and_without_an_engine(tmp_path, monkeypatch):
    from rmem.testing import synthetic_memories, synthetic_questions

    monkeypatch.setattr(engine_rows, "MIN_ROWS", 4096)
    index = Failing()
    memories = list(synthetic_memories(4500, seed=3))
    questions = list(synthetic_questions(8, seed=3, size=4500))
    with Brain(":memory:", vectors=index) as brain, Brain(":memory:") as other:
        brain.remember_many(memories)
        other.remember_many(memories)
        shared = 0
        for question in questions:
            found, without = ([hit.text for hit in one.recall(question, 5)] for one in (brain, other))
            assert found[0] == without[0]
            shared += len(set(found) & set(without))
        assert shared >= 0.85 * 5 * len(questions)
        assert index.asked


# When the engine is down or behind


def test_nothing_is_lost_while_the_engine_is_down(tmp_path, caplog):
    index = Failing()
    with Brain(tmp_path / "m.db", embedder="none", vectors=index) as brain:
        brain.remember_many(items(0, 200))
        assert nearest(brain, QUESTIONS[0]) == expected(QUESTIONS[0], known=200)
        index.down = True
        with caplog.at_level(logging.WARNING):
            brain.remember_many(items(200))  # acknowledged by the store
            assert nearest(brain, QUESTIONS[0]) == expected(QUESTIONS[0])
        assert "the store compares vectors itself" in caplog.text
        brain.forget("m-0")
        index.down = False
        brain._engine.follower._breaker._try_at = 0  # not in half a second
        assert "m-0" not in nearest(brain, VECTORS[0])
        brain._engine.follower.sync()
        assert index.count() == SIZE - 1


def test_a_brain_opens_and_works_without_its_engine(tmp_path):
    pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    with Brain(tmp_path / "m.db", embedder="none", vectors="qdrant://127.0.0.1:1") as brain:
        brain.remember_many(items())
        assert nearest(brain, QUESTIONS[0]) == expected(QUESTIONS[0])


def test_what_another_process_writes_and_forgets_comes_to_the_engine(tmp_path):
    path, index = tmp_path / "m.db", Failing()
    with Brain(path, embedder="none", vectors=index) as brain:
        brain.remember_many(items(0, 200))
        code = (
            "import sys; from rmem import Brain\n"
            "with Brain(sys.argv[1]) as brain:\n"
            "    brain.forget('m-3')\n"
            "    brain.remember('other', id='other', vector=[1.0] + [0.0] * 15)\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert nearest(brain, np.eye(16)[0])[0] == "other"
        assert "m-3" not in nearest(brain, VECTORS[3])
        assert index.count() == 200  # without m-3


def test_those_who_share_an_engine_know_when_it_is_emptied(tmp_path):
    path, index = tmp_path / "m.db", Failing()
    with Brain(path, embedder="none", vectors=index) as one, Brain(path, embedder="none", vectors=index) as two:
        one.remember_many(items(0, 200))
        one._engine.follower.rebuild()
        sent = []
        upsert, index.upsert = index.upsert, lambda *args: sent.append(args) or upsert(*args)
        assert nearest(two, QUESTIONS[0]) == expected(QUESTIONS[0], known=200)
        assert two._engine.follower.sync()
        assert sent == []  # what the first has brought there needs no second
        one._engine.follower.rebuild()
        assert two._engine.catch_up()
        assert two._engine.follower.position == one._engine.follower.position


def test_a_process_that_was_killed_leaves_an_engine_that_catches_up(tmp_path):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    path, file = tmp_path / "m.db", tmp_path / "v.faiss"
    code = (
        "import os, sys; sys.path[:0] = sys.argv[3:]\n"
        "from test_brain_on_engines import items\n"
        "from rmem import Brain\n"
        "brain = Brain(sys.argv[1], embedder='none', vectors='faiss:///' + sys.argv[2])\n"
        "brain.remember_many(items(0, 300)); brain.recall('x', mode='vector', vector=[1.0] * 16); os._exit(9)\n"
    )
    folder = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", code, path, file, folder], capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    with Brain(path) as brain:  # which knows where its vectors are
        brain.remember_many(items(300))
        assert nearest(brain, QUESTIONS[0]) == expected(QUESTIONS[0])
    with Brain(path) as brain:
        assert brain._engine.follower.index.count() == SIZE
        assert nearest(brain, QUESTIONS[1]) == expected(QUESTIONS[1])


def test_a_second_process_does_without_a_faiss_file_that_is_in_use(tmp_path, caplog):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    with Brain(tmp_path / "m.db", embedder="none", vectors=f"faiss:///{tmp_path / 'v.faiss'}") as brain:
        brain.remember_many(items())
        assert nearest(brain, QUESTIONS[0])
        with Brain(tmp_path / "m.db") as second:
            assert nearest(second, QUESTIONS[0]) == expected(QUESTIONS[0])
        assert "in use by another process" in caplog.text


# Erasing


def test_forgetting_a_person_removes_the_vectors_from_the_engine(tmp_path):
    index = Failing()
    with Brain(tmp_path / "m.db", vectors=index) as brain:
        for n in range(5):
            brain.remember(f"Ann Smith said {n}", actor="Ann Smith")
            brain.remember(f"Bob said {n}", actor="Bob")
        brain._engine.follower.sync()
        assert index.count() == 10
        assert len(brain.forget(subject="Ann Smith")) == 5
        assert index.count() == 5
        index.down = True
        with pytest.raises(
            StoreUnreachableError, match="erased from the store, but their vectors are still at failing"
        ):
            brain.forget(subject="Bob")
        assert brain.count() == 0
        index.down = False
        brain._engine.follower._breaker._try_at = 0
        brain.recall("anything")
        assert index.count() == 0


def test_a_brain_that_cannot_reach_the_engine_says_that_vectors_stay(tmp_path):
    with Brain(tmp_path / "m.db", vectors=Failing()) as brain:
        brain.remember("Ann Smith said so", actor="Ann Smith")
    with Brain(tmp_path / "m.db") as brain, pytest.raises(StoreUnreachableError, match=r"not their vectors.*failing"):
        brain.forget(subject="Ann Smith")


# Another embedder


def test_reindexing_fills_the_engine_with_the_new_vectors(tmp_path):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    with Brain(tmp_path / "m.db", embedder="none", vectors=f"faiss:///{tmp_path / 'v.faiss'}") as brain:
        brain.remember_many(items())
    done = admin.reindex(tmp_path / "m.db", "static")
    assert done["vectors"].endswith(f"v.faiss with {SIZE} vectors")
    with Brain(tmp_path / "m.db") as brain:
        index = brain._engine.follower.index
        assert (index.count(), index._dimension) == (SIZE, 256)
        assert brain.recall("memory number 77", mode="vector", k=1)[0].id == "m-77"


def test_an_engine_follows_when_others_reindex(tmp_path):
    index = Failing()
    with Brain(
        tmp_path / "m.db", embedder=lambda texts: [[len(text), 1.0] * 8 for text in texts], vectors=index
    ) as brain:
        brain.remember_many([{"text": item["text"], "id": item["id"]} for item in items()])
        assert brain.recall("memory", mode="vector")
    admin.reindex(tmp_path / "m.db", "static")
    with Brain(tmp_path / "m.db", vectors=index) as brain:
        assert brain.recall("memory number 77", mode="vector", k=1)[0].id == "m-77"
        assert index._dimension == 256


def test_the_command_line_moves_a_store_to_an_engine(tmp_path):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    from click.testing import CliRunner

    from rmem.cli.app import rmem

    with Brain(tmp_path / "m.db") as brain:
        brain.remember("zebra crossing")
    told = CliRunner().invoke(
        rmem, ["--store", str(tmp_path / "m.db"), "reindex", "--vectors", f"faiss:///{tmp_path / 'v.faiss'}"]
    )
    assert "v.faiss with 1 vectors" in told.output
    with Brain(tmp_path / "m.db", vectors="none") as brain:
        assert brain._engine.follower is None
    with Brain(tmp_path / "m.db") as brain:
        assert brain._engine.follower is None
        assert brain.recall("zebra")[0].text == "zebra crossing"


def test_doctor_compares_the_engine_with_the_store(tmp_path):
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    from rmem import doctor

    def told():
        found = [one for one in doctor.examine(tmp_path / "m.db") if one.name == "vector engine"]
        return [(one.ok, one.detail) for one in found]

    with Brain(tmp_path / "m.db", embedder="none") as brain:
        brain.remember_many(items(0, 20))
    assert told() == []
    with Brain(tmp_path / "m.db", vectors=f"faiss:///{tmp_path / 'v.faiss'}") as brain:
        assert brain.count() == 20
    assert told()[0][0] is True
    with Brain(tmp_path / "m.db") as brain:
        brain._engine.follower.index.upsert([99], VECTORS[:1], [Fields()])  # by somebody else
    ((sound, detail),) = told()
    assert not sound
    assert "holds 21 vectors, the store 20: rmem reindex" in detail
    admin.reindex(tmp_path / "m.db", "static")
    assert told()[0][0] is True


# What is refused


def test_an_engine_is_not_given_what_an_encrypted_store_hides(tmp_path):
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    key = os.urandom(32)
    with pytest.raises(ConfigError, match=r"cannot be given with this encryption.*Encryption\(vectors=True\)"):
        Brain(tmp_path / "m.db", encryption=Encryption(master=key), vectors=Failing())
    index = Failing()
    with Brain(tmp_path / "m.db", encryption=Encryption(master=key, vectors=True), vectors=index) as brain:
        brain.remember("zebra crossing")
        assert brain.recall("zebra", mode="vector")
        brain._engine.follower.sync()
        assert index.count() == 1


def test_stores_that_do_not_tell_their_changes_are_refused():
    from rmem.testing.redis import RedisServer

    with RedisServer() as server, pytest.raises(ConfigError, match=r"RedisRecordStore.*'vector feed'"):
        Brain(server.url, vectors=Failing())


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("pinecone://x", "vectors must be milvus://"),
        ("nothing", "vectors must be milvus://"),
        ("faiss://host/file", "faiss:// takes a path"),
        ("faiss:///?index=HNSW32", "cannot remove vectors"),
        ("qdrant://host:port", "malformed"),
        ("qdrant://user:secret@host", "must not hold a password"),
        ("qdrant://host?index=x", "takes the options collection, tls, not 'index'"),
        ("qdrant://host?collection=a-b", "collection must be a letter"),
        ("milvus://", "must name a host or a file"),
        ("milvus://host?consistency=Weak", "consistency must be one of Strong, Bounded"),
        ("milvus://host?partitions=0", "partitions must be a whole number"),
        ("milvus://host?index=ANNOY", "index must be one of HNSW"),
        ("pgvector://host", "must name a database"),
    ],
)
def test_an_address_that_is_wrong_is_explained(address, told):
    needed = {"faiss": "faiss", "qdrant": "qdrant_client", "milvus": "pymilvus", "pgvector": "pgvector"}
    scheme = address.partition(":")[0]
    if scheme in needed:
        pytest.importorskip(needed[scheme], reason=f"{needed[scheme]} is not installed")
    with pytest.raises(ConfigError, match=told):
        Brain(":memory:", vectors=address)


def test_what_is_no_index_is_refused():
    with pytest.raises(InputError, match="vectors must be"):
        Brain(":memory:", vectors=7)


def test_a_package_that_is_missing_is_named():
    """In an environment without it; the name of its extra comes with it."""
    code = (
        "import sys\n"
        "for name in ('faiss', 'qdrant_client', 'pymilvus'): sys.modules[name] = None\n"
        "from importlib.util import find_spec\n"
        "import rmem.extras, rmem\n"
        "rmem.extras.find_spec = lambda name: None\n"
        "for address in ('faiss:///', 'qdrant://h', 'milvus://h'):\n"
        "    try: rmem.Brain(':memory:', vectors=address)\n"
        "    except rmem.errors.ConfigError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.splitlines()
    assert [line.partition("pip install ")[2] for line in told] == ['"rmem[faiss]"', '"rmem[qdrant]"', '"rmem[milvus]"']


# Other faces


def test_the_facade_has_its_vectors_in_an_engine(tmp_path):
    index = Failing()
    with EnhancedAgentMemory(True, path=tmp_path / "a.db", vectors=index) as memory:
        memory.add("The automobile would not start")
        assert memory.recall("vehicle")[0][0] == "exp_0"
    assert index.count() == 1


def test_an_index_of_several_processes_is_not_shared_by_accident(tmp_path, postgres_url):
    pytest.importorskip("pgvector", reason="pgvector is not installed")
    address = pgvector_address(postgres_url)
    for name in ("one", "two"):
        with Brain(tmp_path / f"{name}.db", embedder="none", vectors=address) as brain:
            brain.remember_many(items(0, 30 if name == "one" else 20))
    with Brain(tmp_path / "one.db") as one, Brain(tmp_path / "two.db") as two:
        assert (one._engine.follower.index.count(), two._engine.follower.index.count()) == (30, 20)


def test_a_learned_faiss_index_finds_what_a_flat_one_does(tmp_path, monkeypatch):
    faiss_module = pytest.importorskip("rmem.vectors.faiss")
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    monkeypatch.setattr(faiss_module, "TRAIN_FROM", 300)
    for kind in ("SQ8", "IVF4,Flat"):
        file = tmp_path / f"{kind}.faiss"
        index = faiss_module.FaissIndex(file, kind=kind)
        for start in range(0, SIZE, 100):
            index.upsert(range(start, start + 100), VECTORS[start : start + 100], [Fields()] * 100)
        assert index._trained
        index.delete([0, 1])
        index.close()
        again = faiss_module.FaissIndex(file, kind=kind)
        assert again._trained
        assert again.count() == SIZE - 2
        hits = [again.search(VECTORS[n], 1)[0][0] == n for n in range(2, SIZE)]
        assert np.mean(hits) > 0.95
        again.close()
