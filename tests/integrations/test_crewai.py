"""CrewAI's storage of memories: its own tests, and what is ours alone."""

from __future__ import annotations

import pytest

pytest.importorskip("crewai", reason="crewai is not installed: make test-frameworks")

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from upstream import outcomes, sources

from rmem import Brain
from rmem.errors import ConfigError
from rmem.integrations.crewai import BrainStorage

QDRANT = "tests/memory/test_qdrant_edge_storage.py::test_"
INSIDE = [  # the shards of Qdrant
    "tests/memory/test_unified_memory.py::test_close_drains_and_shuts_down",  # counts in a storage that was closed
    f"{QDRANT}flush_to_central",
    f"{QDRANT}dual_shard_search",
    f"{QDRANT}close_lifecycle",
    f"{QDRANT}orphaned_shard_cleanup",
    "tests/memory/test_lancedb_update.py::test_update_serialization_failure_preserves_existing_record",  # its table
]


@pytest.mark.framework("crewai", "its own tests")
def test_the_tests_of_its_storages_and_of_memory_on_them_pass(tmp_path, record_property):
    files = [f"tests/memory/test_{name}.py" for name in ("unified_memory", "lancedb_update", "qdrant_edge_storage")]
    counted = outcomes(sources("crewai", tmp_path), files, "replace_crewai", deselect=INSIDE, alone=True)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "warning", "warnings"}
    assert counted["passed"] > 60


def test_it_is_a_storage_backend():
    with Brain(":memory:") as brain:
        assert isinstance(BrainStorage(brain), StorageBackend)


def test_memory_of_crewai_needs_no_key_with_the_vectors_of_a_brain(tmp_path):
    with Brain(tmp_path / "a.db") as brain:
        storage = BrainStorage(brain)
        memory = Memory(storage=storage, embedder=storage.embed)
        for text in ("Ann's dog is called Bruno", "the train leaves at nine"):
            memory.remember(text, scope="/ann", categories=["notes"], importance=0.7, metadata={"by": "form"})
        found = memory.recall("what is the dog called?", scope="/ann", depth="shallow")
        assert found[0].record.content == "Ann's dog is called Bruno"
        memory.close()
    with Brain(tmp_path / "a.db") as brain:
        assert brain.recall("dog", k=1)[0].text == "Ann's dog is called Bruno"
        (record,) = (one for one in BrainStorage(brain).list_records("/ann") if "dog" in one.content)
        assert (record.categories, record.metadata, record.importance) == (["notes"], {"by": "form"}, 0.7)


def test_a_brain_without_an_embedder_says_so():
    storage = BrainStorage(":memory:")
    with pytest.raises(ConfigError, match="no embedder"):
        storage.embed(["dog"])
    storage.close()


def test_scopes_with_a_common_beginning_are_not_mixed_up():
    storage = BrainStorage(":memory:")
    storage.save([MemoryRecord(content=scope, scope=scope) for scope in ("/team", "/team/a", "/teams", "/")])
    assert storage.count("/team") == 2
    assert storage.list_scopes("/") == ["/team", "/teams"]
    assert storage.delete(scope_prefix="/team") == 2
    assert [record.content for record in storage.list_records()] == ["/", "/teams"]
    storage.close()
