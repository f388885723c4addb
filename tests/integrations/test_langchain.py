"""LangChain's vector store, retriever and chat history: the published standard tests, and what is ours alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed: make test-frameworks")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.vectorstores import VectorStoreRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from rmem import Brain
from rmem.integrations.langchain import BrainChatHistory, BrainVectorStore

standard = [
    pytest.mark.framework("langchain-core", "its own tests"),
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:.*is not an async function"),
]
"""Marks for the standard tests, some of which are async."""


class TestBrainVectorStore(VectorStoreIntegrationTests):
    pytestmark = standard

    @pytest.fixture
    def vectorstore(self) -> Iterator[BrainVectorStore]:
        store = BrainVectorStore(":memory:", embedding=self.get_embeddings())
        yield store
        store.close()


class TestOnABrainsOwnRecall(VectorStoreIntegrationTests):
    pytestmark = standard

    @pytest.fixture
    def vectorstore(self, tmp_path) -> Iterator[BrainVectorStore]:
        with Brain(tmp_path / "a.db") as brain:
            yield BrainVectorStore(brain)


class TestRetriever(RetrieversIntegrationTests):
    """`as_retriever()` gives a VectorStoreRetriever; the tests make theirs with `search_kwargs`."""

    pytestmark = standard

    @property
    def retriever_constructor(self):
        def retriever(**given) -> VectorStoreRetriever:
            store = BrainVectorStore(":memory:")
            store.add_texts(["a red apple", "a green apple", "an apple pie", "an apple tree"])
            return store.as_retriever(search_kwargs=given)

        return retriever

    @property
    def retriever_constructor_params(self) -> dict[str, int]:
        return {"k": 2}

    @property
    def retriever_query_example(self) -> str:
        return "apple"


def test_filters_take_mappings_and_functions():
    store = BrainVectorStore(":memory:")
    store.add_texts([f"apple of {year}" for year in range(2000, 2030)], [{"year": year} for year in range(2000, 2030)])
    late = store.similarity_search("apple", k=3, filter={"year": {"$gt": 2027}})
    assert {one.metadata["year"] for one in late} == {2028, 2029}
    assert store.similarity_search("apple", k=1, filter=lambda one: one.metadata["year"] == 2003)[0].metadata == {
        "year": 2003
    }
    store.close()


def test_relevance_is_between_0_and_1_and_diverse_results_differ():
    for embedding in (None, DeterministicFakeEmbedding(size=6)):
        store = BrainVectorStore(":memory:", embedding=embedding)
        store.add_documents([Document("red apple"), Document("red apples"), Document("blue car")])
        scored = store.similarity_search_with_relevance_scores("red apple", k=2)
        assert scored
        assert all(0 <= relevance <= 1 for _, relevance in scored)
        assert len({one.id for one in store.max_marginal_relevance_search("red apple", k=2)}) == 2
        store.close()


def test_an_empty_document_comes_back_empty():
    store = BrainVectorStore(":memory:")
    store.add_texts([""], ids=["1"])
    assert store.get_by_ids(["1"]) == [Document("", id="1")]
    store.close()


def test_a_chat_comes_back_in_order_and_recall_finds_it(tmp_path):
    said = [
        HumanMessage("my dog is called Bruno"),
        AIMessage("", tool_calls=[{"name": "note", "args": {"dog": "Bruno"}, "id": "1"}]),
        ToolMessage("noted", tool_call_id="1"),
        AIMessage("I will remember Bruno"),
    ]
    with Brain(tmp_path / "a.db") as brain:
        BrainChatHistory("one", brain).add_messages(said)
        BrainChatHistory("two", brain).add_user_message("something else")
    with Brain(tmp_path / "a.db") as brain:
        history = BrainChatHistory("one", brain)
        assert history.messages == said
        assert brain.recall("dog", k=1)[0].text == "my dog is called Bruno"
        history.clear()
        assert history.messages == []
        assert len(BrainChatHistory("two", brain).messages) == 1
