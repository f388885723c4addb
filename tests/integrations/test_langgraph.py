"""LangGraph's store: the tests of its own in-memory and SQLite stores, and what is ours alone."""

from __future__ import annotations

import importlib.util

import pytest

from rmem import Brain
from rmem.errors import ConfigError

needs_langgraph = pytest.mark.skipif(
    importlib.util.find_spec("langgraph") is None, reason="langgraph is not installed: make test-frameworks"
)

INSIDE_SQLITE = [  # tests of that store's inside, or of what is said otherwise elsewhere
    "tests/test_store.py::test_vector_store_initialization",  # reads the tables of its connection
    "tests/test_store.py::test_nonnull_migrations",
    "tests/test_store.py::test_escape_glob_literal",
    "tests/test_store.py::test_namespace_match_pattern",
    "tests/test_store.py::test_list_namespaces_prefix_uses_indexable_condition",
    "tests/test_store.py::test_sql_injection_vulnerability",  # wants keys refused that SQL would be made of
    "tests/test_async_store.py::test_no_running_loop",  # wants sync calls refused
    # BaseStore and the PostgreSQL store refresh on read unless told otherwise; the SQLite store does not.
    "tests/test_ttl.py::test_ttl_override_default",
]


@pytest.mark.skipif(importlib.util.find_spec("langgraph") is not None, reason="langgraph is installed")
def test_without_langgraph_the_sentence_names_the_extra():
    with pytest.raises(ConfigError, match=r'pip install "rmem\[langgraph\]"'):
        importlib.import_module("rmem.integrations.langgraph")


@needs_langgraph
@pytest.mark.framework("langgraph", "its own tests")
def test_the_tests_of_the_in_memory_store_pass(tmp_path, record_property):
    from upstream import outcomes, sources

    counted = outcomes(sources("langgraph-checkpoint", tmp_path), ["tests/test_store.py"], "replace_langgraph")
    record_property("counted", counted["passed"])
    assert counted.keys() == {"passed"}
    assert counted["passed"] > 50


@needs_langgraph
@pytest.mark.framework("langgraph", "its own tests")
def test_the_tests_of_the_sqlite_store_pass(tmp_path, record_property):
    from upstream import outcomes, sources

    files = ["tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"]
    root = sources("langgraph-checkpoint-sqlite", tmp_path)
    counted = outcomes(root, files, "replace_langgraph", deselect=INSIDE_SQLITE)
    record_property("counted", counted["passed"])
    assert counted.keys() <= {"passed", "deselected", "retried"}
    assert counted["passed"] > 50


@needs_langgraph
def test_an_item_is_a_memory_that_recall_finds_and_another_store_reads(tmp_path):
    from rmem.integrations.langgraph import BrainStore

    with Brain(tmp_path / "a.db") as brain:
        BrainStore(brain).put(("users", "ann"), "pet", {"text": "Ann's dog is called Bruno"})
        BrainStore(brain).put(("users", "ann"), "hidden", {"text": "Ann's second dog is Rex"}, index=False)
        assert brain.recall("dog", k=1)[0].text == "Ann's dog is called Bruno"
    with BrainStore(tmp_path / "a.db") as store:
        assert store.get(("users", "ann"), "pet").value == {"text": "Ann's dog is called Bruno"}
        found = store.search(("users",), query="dog Rex")
        assert [(item.key, item.score is None) for item in found] == [("pet", False), ("hidden", True)]


@needs_langgraph
def test_stores_of_two_agents_share_a_brain_and_see_nothing_of_each_other():
    from rmem.integrations.langgraph import BrainStore

    with Brain(":memory:") as brain:
        one, other = BrainStore(brain, agent="one"), BrainStore(brain, agent="other")
        one.put(("a",), "key", {"text": "of one"})
        other.put(("a",), "key", {"text": "of the other"})
        other.delete(("a",), "key")
        assert one.get(("a",), "key").value == {"text": "of one"}
        assert other.search(()) == other.list_namespaces() == []


@needs_langgraph
def test_fewer_texts_of_an_item_leave_no_part_behind():
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from rmem.integrations.langgraph import PART, BrainStore

    with BrainStore(
        ":memory:", index={"embed": DeterministicFakeEmbedding(size=16), "fields": ["a", "b", "c"]}
    ) as store:
        store.put(("n",), "key", {"a": "one", "b": "two", "c": "three"})
        assert store.brain.count({"type": PART}) == 2
        store.put(("n",), "key", {"a": "one", "b": "two"})
        assert store.brain.count({"type": PART}) == 1
        store.delete(("n",), "key")
        assert store.brain.count() == 0
