"""Stores embedded with an earlier table of the static embedder: they open, are searched by words, and move."""

from __future__ import annotations

import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest

from rmem import Brain, Embedder
from rmem.admin import reindex
from rmem.doctor import examine
from rmem.embed.static import StaticEmbedder

OLD = "static:l2_supercat_256"


class OldTable(Embedder):
    """As the earlier table: other vectors of the same size under its name."""

    name = OLD
    dimension = 256

    def embed(self, texts):
        return -StaticEmbedder().embed(texts)


@pytest.fixture
def old_store(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    with Brain(path, embedder=OldTable()) as brain:
        brain.remember("the parquet reader ran out of memory", id="a")
        brain.remember("lunch is at noon in the garden", id="b")
    with sqlite3.connect(path) as file:  # as a store of the default embedder had it
        file.execute("INSERT OR REPLACE INTO notes (key, value) VALUES ('embedder_spec', 'static')")
    return path


def test_an_old_store_opens_with_a_warning_and_is_searched_by_words(old_store: Path) -> None:
    with Brain(old_store) as brain:
        with pytest.warns(FutureWarning, match=r"l2_supercat_256.*by words.*rmem reindex"):
            hits = brain.recall("parquet memory", k=1)
        assert [hit.memory.memory_id for hit in hits] == ["a"]
        assert brain.embedder == OLD
        assert brain.recall("parquet memory", mode="vector") == []


def test_naming_the_static_embedder_opens_an_old_store_too(old_store: Path) -> None:
    with pytest.warns(FutureWarning, match="rmem reindex"):
        brain = Brain(old_store, embedder="static")
    assert brain.recall("lunch", k=1)[0].memory.memory_id == "b"
    brain.close()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_memories_added_to_an_old_store_are_found_by_words_and_mix_no_vectors(old_store: Path) -> None:
    with Brain(old_store) as brain:
        brain.remember("the ferry goes twice a day", id="c")
        assert brain.recall("ferry", k=1)[0].memory.memory_id == "c"
        assert brain.stats()["vectors"] == 2


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_reindex_moves_an_old_store_to_the_new_table(old_store: Path) -> None:
    with Brain(old_store) as brain:
        brain.remember("the ferry goes twice a day", id="c")
    assert any("rmem reindex" in finding.detail for finding in examine(old_store) if not finding.ok)
    assert reindex(old_store)["embedder"] == StaticEmbedder.name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Brain(old_store) as brain:
            assert brain.stats()["vectors"] == 3
            assert brain.recall("boat timetable", mode="vector", k=1)[0].memory.memory_id == "c"
            vector = brain.get("a").embeddings.full_vector
            np.testing.assert_allclose(vector, brain.vector_of("the parquet reader ran out of memory"), atol=0.02)
