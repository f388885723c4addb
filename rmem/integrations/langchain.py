"""LangChain's `VectorStore`, with its retriever, and chat history on a Brain.

from rmem.integrations.langchain import BrainVectorStore
retriever = BrainVectorStore("memories.db").as_retriever(search_kwargs={"k": 3})
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..annotations import Mode
from ..brain import Brain
from ..errors import ConfigError
from ..extras import require
from ..filters import Filter
from ..models import Memory
from .common import MAX_HITS, id_of, matches, open_brain, store_filter
from .embeddings import LangChainEmbedder, pad_vector
from .turns import Turn, Turns

require("langchain", "rmem.integrations.langchain")

from langchain_core.chat_history import BaseChatMessageHistory  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict  # noqa: E402
from langchain_core.vectorstores import VectorStore  # noqa: E402
from langchain_core.vectorstores.utils import maximal_marginal_relevance  # noqa: E402

DOCUMENT, MESSAGE = "langchain_document", "langchain_message"
"""Types of memories: a document of a vector store, a message of a chat."""


class BrainVectorStore(VectorStore):
    """Documents of LangChain in `brain`, a Brain or its address.

    Without `embedding`, a search is a hybrid recall of the Brain. With `embedding`, which needs an address, it is by
    cosine alone, as in other vector stores; `mode="hybrid"` adds the words. A `filter` is a mapping of
    metadata, such as {"year": {"$gte": 2024}}, or a function of a Document.
    """

    def __init__(
        self,
        brain: Brain | str | Path | None = None,
        *,
        embedding: Embeddings | None = None,
        collection: str = "langchain",
        mode: Mode | None = None,
    ) -> None:
        if embedding is not None and isinstance(brain, Brain):
            raise ConfigError(
                "embedding goes with an address; a Brain has an embedder of its own: "
                "Brain(address, embedder=LangChainEmbedder(…)), from rmem.integrations.embeddings"
            )
        self._embedding = embedding
        self._mode: Mode = mode or ("hybrid" if embedding is None else "vector")
        self.collection = collection
        self.brain, self._owned = open_brain(brain, None if embedding is None else LangChainEmbedder(embedding))

    @property
    def embeddings(self) -> Embeddings | None:
        return self._embedding

    # Writing

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[Any, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts as memories, a thousand in a transaction; replace those with the same id."""
        given = list(texts)
        keys = [key or str(uuid.uuid4()) for key in (ids or [""] * len(given))]
        held = metadatas or [{} for _ in given]
        new = [
            {
                "id": self._id_of(key),
                "agent": self.collection,
                "type": DOCUMENT,
                "text": text if text.strip() else key,
                "metadata": {"key": key, "document": metadata, **({} if text.strip() else {"blank": text})},
            }
            for text, key, metadata in zip(given, keys, held, strict=True)
        ]
        self.brain.remember_many(new)
        return keys

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents; all of the collection without `ids`."""
        if ids is None:
            self.brain.forget(where=self._where())
        for key in ids or []:
            self.brain.forget(self._id_of(key))
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[Any, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        brain: Brain | str | Path | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these texts. Further arguments are those of the class."""
        store = cls(brain, embedding=embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # Reading

    def _id_of(self, key: str) -> str:
        return id_of("langchain", self.collection, key)

    def _where(self, wanted: Any = None) -> Filter:
        attributes = store_filter(wanted, "document") if isinstance(wanted, dict) else {}
        return Filter.of({"agent": self.collection, "type": DOCUMENT, "attributes": attributes})

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the existing documents among these ids, in this order."""
        found = self.brain.get_many([self._id_of(key) for key in ids])
        return [_document(memory) for memory in found if memory is not None]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents that best answer a question."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return the documents that best answer, with scores: cosines if `embedding` was given."""
        return [(document, score) for document, score, *_ in self._search(query, k, **kwargs)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the documents that best answer, with the probability that each does."""
        kwargs.pop("score_threshold", None)  # the caller applies it
        return [(document, relevance) for document, _, relevance, _ in self._search(query, k, **kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents with the nearest vectors."""
        found = self._search("vector", k, vector=embedding, mode="vector", **kwargs)
        return [document for document, *_ in found]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return the best documents that differ from each other."""
        if self._embedding is not None:
            vector = self._embedding.embed_query(query)
        else:
            given = self.brain.vector_of(query)
            vector = [] if given is None else given.tolist()
        found = self._search(query, fetch_k, **kwargs)
        return self._diverse(vector, found, k, lambda_mult) if vector else [document for document, *_ in found[:k]]

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        found = self._search("vector", fetch_k, vector=embedding, mode="vector", **kwargs)
        return self._diverse(embedding, found, k, lambda_mult)

    def _diverse(
        self, vector: list[float], found: list[tuple[Document, float, float, Memory]], k: int, lambda_mult: float
    ) -> list[Document]:
        with_vector = [(document, memory.vector) for document, _, _, memory in found if memory.vector is not None]
        query = np.asarray(pad_vector(vector), np.float32)
        vectors = [vector for _, vector in with_vector]
        return [with_vector[at][0] for at in maximal_marginal_relevance(query, vectors, lambda_mult, k)]

    def _search(
        self,
        query: str,
        k: int,
        *,
        filter: Any = None,
        vector: list[float] | None = None,
        mode: Mode | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float, float, Memory]]:
        """Return (document, score, relevance, memory), best first. Further options go to `Brain.recall`."""
        if not query.strip():
            return []
        where = self._where(filter)
        options: dict[str, Any] = {"where": where, "mode": mode or self._mode, **kwargs}
        if vector is not None:
            options["vector"] = pad_vector(vector)
        fetched = min(k, MAX_HITS)
        while True:
            hits = self.brain.recall(query, k=fetched, **options)
            found = [(_document(hit.memory), hit.score, hit.relevance or 0.0, hit.memory) for hit in hits]
            if callable(filter):
                found = [row for row in found if filter(row[0])]
            elif filter:
                found = [row for row in found if matches(row[0].metadata, filter)]
            if len(found) >= k or len(hits) < fetched or fetched == MAX_HITS:
                return found[:k]
            fetched = min(MAX_HITS, 4 * fetched)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()


def _document(memory: Memory) -> Document:
    own = memory.contents
    return Document(id=own["key"], page_content=own.get("blank", memory.text), metadata=own["document"])


class BrainChatHistory(BaseChatMessageHistory):
    """The messages of one chat, each a memory with its session: `RunnableWithMessageHistory(chain, BrainChatHistory)`.

    Messages without words, such as calls of tools, are stored too; they are found by the name of their role.
    """

    def __init__(self, session_id: str, brain: Brain | str | Path | None = None, *, agent: str = "langchain") -> None:
        self.session_id = session_id
        self._turns = Turns(brain, MESSAGE, agent=agent, value_field="message")
        self.brain = self._turns.brain

    @property
    def messages(self) -> list[BaseMessage]:
        """Return all messages, oldest first."""
        read: list[BaseMessage] = messages_from_dict(self._turns.read(self.session_id))
        return read

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in one transaction."""
        turns = [Turn(message.type, message.text, message_to_dict(message)) for message in messages]
        self._turns.add(turns, self.session_id)

    def clear(self) -> None:
        self._turns.clear(self.session_id)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()
