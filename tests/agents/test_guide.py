"""The Advanced Memory System Guide, sections 3.1 to 3.4: its code runs as written (the one library that we do not have
is stood in for by our embedder), and ours does what its code does."""

from __future__ import annotations

import inspect
import sys
import types

import pytest

from rmem import EnhancedAgentMemory, InMemoryStore, MemoryStore, VectorMemoryStore
from rmem.embed import static_embedder

MEMORY_STORE = """
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Tuple, Optional, Generic, TypeVar

T = TypeVar("T")

class MemoryStore(ABC, Generic[T]):
    @abstractmethod
    def add(self, key: str, value: T, meta: Dict[str, Any] | None = None): ...
    @abstractmethod
    def get(self, key: str) -> Optional[T]: ...
    @abstractmethod
    def search(self, query: str, top_k: int = 5) -> List[Tuple[str, T, float]]: ...
    @abstractmethod
    def forget(self, key: str) -> bool: ...
"""

IN_MEMORY = """
from collections import defaultdict
from memory_store import MemoryStore

class InMemoryStore(MemoryStore[str]):
    def __init__(self):
        self.data: dict[str, str] = {}
        self.meta: dict[str, dict] = defaultdict(dict)

    def add(self, key, value, meta=None):
        self.data[key] = value
        if meta: self.meta[key] = meta

    def get(self, key):
        return self.data.get(key)

    def search(self, query, top_k=5):
        # naive substring ranking
        hits = [(k, v, 1.0) for k, v in self.data.items() if query.lower() in v.lower()]
        return hits[:top_k]

    def forget(self, key):
        return self.data.pop(key, None) is not None
"""

VECTOR = """
import numpy as np
from memory_store import MemoryStore
from sentence_transformers import SentenceTransformer

class VectorMemoryStore(MemoryStore[str]):
    def __init__(self, model_name="all-MiniLM-L6-v2"):
        self.model = SentenceTransformer(model_name)
        self.texts: list[str] = []
        self.embeds: list[np.ndarray] = []
        self.keys: list[str] = []

    def _embed(self, txt): return self.model.encode(txt, normalize_embeddings=True)

    def add(self, key, value, meta=None):
        self.keys.append(key)
        self.texts.append(value)
        self.embeds.append(self._embed(value))

    def search(self, query, top_k=5):
        q = self._embed(query)
        sims = (np.dot(self.embeds, q) ).tolist()
        idxs = np.argsort(sims)[::-1][:top_k]
        return [(self.keys[i], self.texts[i], sims[i]) for i in idxs]

    # get / forget similar to InMemoryStore
    def get(self, key): return dict(zip(self.keys, self.texts)).get(key)
    def forget(self, key): raise NotImplementedError
"""

FACADE = """
from stores.in_memory import InMemoryStore
from stores.vector_store import VectorMemoryStore

class EnhancedAgentMemory:
    def __init__(self, persistent=False, vector=True):
        self.working = InMemoryStore()
        self.long_term = InMemoryStore()  # swap for SqliteStore if persistent
        self.vector = VectorMemoryStore() if vector else None

    def add_experience(self, text: str, importance: int = 1):
        key = f"exp_{len(self.long_term.data)}"
        self.long_term.add(key, text, meta={"importance": importance})
        if self.vector:
            self.vector.add(key, text)

    def recall(self, query: str, k: int = 5):
        if self.vector:
            return self.vector.search(query, k)
        return self.long_term.search(query, k)

    # Wrapper helpers used by Agent ---------------------------
    def add_message(self, role, content):
        self.working.add(f"msg_{len(self.working.data)}", f"{role}: {content}")

    def get_recent_messages(self, n=10):
        items = list(self.working.data.values())[-n:]
        return "\\n".join(items)
"""

EXPERIENCES = (
    "The nightly ETL job died of memory and was moved to pyarrow.dataset",
    "Anna prefers short answers in the morning",
    "Staging listens on port 8443",
    "The invoice of March is still unpaid",
)


class SentenceTransformer:
    """What the guide uses of the library."""

    def __init__(self, name):
        assert name == "all-MiniLM-L6-v2"

    def encode(self, text, normalize_embeddings):
        assert normalize_embeddings
        return static_embedder().embed([text])[0]


@pytest.fixture
def guide(monkeypatch):
    """A function that runs a block as a module of the name that the guide gives it."""
    library = types.ModuleType("sentence_transformers")
    library.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    monkeypatch.setitem(sys.modules, "stores", types.ModuleType("stores"))

    def run(name, code, **ours):
        module = types.ModuleType(name)
        vars(module).update(ours)
        monkeypatch.setitem(sys.modules, name, module)
        exec(code, vars(module))
        return module

    return run


@pytest.fixture
def theirs(guide):
    guide("memory_store", MEMORY_STORE)
    guide("stores.in_memory", IN_MEMORY)
    guide("stores.vector_store", VECTOR)
    return guide("enhanced_memory", FACADE).EnhancedAgentMemory


def test_the_abstract_store_is_ours(guide):
    theirs = guide("memory_store", MEMORY_STORE).MemoryStore
    assert theirs.__abstractmethods__ == MemoryStore.__abstractmethods__
    for name in theirs.__abstractmethods__:
        wanted = inspect.signature(getattr(theirs, name)).parameters.values()
        given = inspect.signature(getattr(MemoryStore, name)).parameters.values()
        assert [(one.name, one.default) for one in wanted] == [(one.name, one.default) for one in given]


def test_a_store_written_for_the_guide_is_a_store_of_ours(guide):
    guide("memory_store", "", MemoryStore=MemoryStore)
    store = guide("stores.in_memory", IN_MEMORY).InMemoryStore()
    assert isinstance(store, MemoryStore)
    store.add("a", "The sky is blue", meta={"importance": 1})
    assert store.search("SKY") == InMemoryStore.search(_copy(store), "SKY") == [("a", "The sky is blue", 1.0)]


def _copy(store):
    ours = InMemoryStore()
    for key, value in store.data.items():
        ours.add(key, value, meta=store.meta[key])
    return ours


def test_the_dictionary_store_does_what_the_guides_does(guide):
    guide("memory_store", MEMORY_STORE)
    stores = guide("stores.in_memory", IN_MEMORY).InMemoryStore(), InMemoryStore()
    for store in stores:
        for number, text in enumerate(EXPERIENCES):
            store.add(f"k{number}", text, meta={"n": number})
        store.add("k0", "replaced")
        store.forget("k1")
    theirs, ours = stores
    assert ours.data == theirs.data
    assert ours.meta["k2"] == theirs.meta["k2"]
    for query in ("port", "THE INVOICE", "replaced", "stag"):
        assert ours.search(query) == theirs.search(query)
    assert ours.forget("nobody") is theirs.forget("nobody") is False
    assert ours.get("nobody") is theirs.get("nobody") is None


def test_the_vector_store_ranks_as_the_guides_does(guide):
    guide("memory_store", MEMORY_STORE)
    theirs, ours = guide("stores.vector_store", VECTOR).VectorMemoryStore(), VectorMemoryStore()
    for store in (theirs, ours):
        for number, text in enumerate(EXPERIENCES):
            store.add(f"k{number}", text)
    assert (ours.keys, ours.texts) == (theirs.keys, theirs.texts)
    for query in ("out of memory", "which port?", "brief replies"):
        wanted, given = theirs.search(query, 3), ours.search(query, 3)
        assert [hit[:2] for hit in given] == [hit[:2] for hit in wanted]
        assert [hit[2] for hit in given] == pytest.approx([hit[2] for hit in wanted], abs=1e-5)


@pytest.mark.parametrize("vector", [True, False])
def test_the_facade_answers_as_the_guides_does(theirs, vector):
    for memory in (theirs(vector=vector), EnhancedAgentMemory(vector=vector)):
        for number, text in enumerate(EXPERIENCES):
            memory.add_experience(text, importance=number + 1)
        for role, content in (("user", "hello"), ("assistant", "hi"), ("user", "which port?")):
            memory.add_message(role, content)
        assert memory.get_recent_messages() == "user: hello\nassistant: hi\nuser: which port?"
        assert memory.get_recent_messages(n=2) == "assistant: hi\nuser: which port?"
        assert memory.working.data == {"msg_0": "user: hello", "msg_1": "assistant: hi", "msg_2": "user: which port?"}
        assert memory.long_term.get("exp_2") == "Staging listens on port 8443"
        assert memory.long_term.meta["exp_2"]["importance"] == 3
        assert (memory.vector is not None) is vector
        key, text, score = memory.recall("port", k=1)[0]
        assert (key, text) == ("exp_2", "Staging listens on port 8443")
        assert isinstance(score, float)
        if memory.vector:
            assert memory.vector.search("port", 1)[0][:2] == ("exp_2", "Staging listens on port 8443")
            assert memory.vector.keys[:4] == ["exp_0", "exp_1", "exp_2", "exp_3"]


def test_the_guides_facade_runs_on_our_stores(guide):
    guide("stores.in_memory", "", InMemoryStore=InMemoryStore)
    guide("stores.vector_store", "", VectorMemoryStore=VectorMemoryStore)
    memory = guide("enhanced_memory", FACADE).EnhancedAgentMemory()
    for text in EXPERIENCES:
        memory.add_experience(text)
    memory.add_message("user", "hello")
    assert memory.recall("the port of staging", k=1)[0][:2] == ("exp_2", EXPERIENCES[2])
    assert memory.get_recent_messages() == "user: hello"
