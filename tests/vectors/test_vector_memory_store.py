"""VectorMemoryStore on every engine: it passes the suite of stores, and its values outlive engine and process."""

from __future__ import annotations

import numpy as np
import pytest
from vector_engines import ENGINES

from rmem import SqliteStore, VectorMemoryStore
from rmem.errors import ConfigError, InputError, StoreUnreachableError
from rmem.testing import MemoryStoreContract
from rmem.vectors.memory import MemoryIndex


@pytest.mark.parametrize("engine", ENGINES[1:])
class TestVectorMemoryStore(MemoryStoreContract):
    by_meaning = True

    @pytest.fixture
    def store(self, engine, engine_index):
        return VectorMemoryStore(vectors=engine_index(engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_are_cosines(engine, engine_index):
    store = VectorMemoryStore(vectors=engine_index(engine))
    store.add_many({"car": "The automobile would not start", "sea": "Waves at the harbour", "tax": "The tax is due"})
    vector = store.model.embed_query("my vehicle is broken")
    expected = sorted(zip(store.keys, np.stack(store.embeds) @ vector, strict=True), key=lambda pair: -pair[1])
    found = store.search("my vehicle is broken")
    assert [key for key, _, _ in found] == [key for key, _ in expected]
    assert np.allclose([score for _, _, score in found], [score for _, score in expected], atol=5e-3)


@pytest.mark.parametrize("engine", ["faiss-file", "qdrant-folder", "milvus", "pgvector"])
def test_values_and_vectors_outlive_the_process(engine, engine_index, tmp_path):
    index = engine_index(engine)
    with VectorMemoryStore(values=SqliteStore(tmp_path / "n.db"), vectors=index) as store:
        store.add("car", "The automobile would not start", meta={"source": "log"})
    again = engine_index(engine)
    assert again.count() == 1
    with VectorMemoryStore(values=SqliteStore(tmp_path / "n.db"), vectors=again) as store:
        assert store.search("vehicle")[0][:2] == ("car", "The automobile would not start")
        assert store.meta_of("car") == {"source": "log"}


class Switched(MemoryIndex):
    """A real index that can be switched off."""

    down = False

    def upsert(self, *args):
        if self.down:
            raise StoreUnreachableError("switched off")
        super().upsert(*args)

    def delete(self, *args):
        if self.down:
            raise StoreUnreachableError("switched off")
        super().delete(*args)

    def search(self, *args):
        if self.down:
            raise StoreUnreachableError("switched off")
        return super().search(*args)


def test_nothing_is_lost_while_the_engine_is_away():
    index = Switched()
    store = VectorMemoryStore(vectors=index)
    store.add("sea", "Waves at the harbour")
    index.down = True
    store.add("car", "The automobile would not start")
    assert store.get("car") == "The automobile would not start"
    assert store.search("automobile start")[0][0] == "car"  # by words
    assert store.forget("sea") is True
    index.down = False
    assert [key for key, _, _ in store.search("vehicle")] == ["car"]
    assert index.count() == 1


def test_a_new_engine_is_filled_from_the_values(tmp_path):
    values = SqliteStore(tmp_path / "n.db")
    values.add_many({f"k{n}": f"text number {n}" for n in range(20)})
    index = MemoryIndex()
    store = VectorMemoryStore(values=values, vectors=index)
    assert store.search("text number 7", top_k=1)[0][0] == "k7"
    assert index.count() == 20


def test_what_is_wrong_is_named():
    with pytest.raises(InputError, match="values must be a KeyedStore"):
        VectorMemoryStore(values={})
    with pytest.raises(InputError, match="vectors must be milvus"):
        VectorMemoryStore(vectors=7)
    with pytest.raises(ConfigError, match="vectors must be milvus"):
        VectorMemoryStore(vectors="weaviate://x")
