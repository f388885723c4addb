"""LangChain's `VectorStore` and chat history on a Brain; `as_retriever()` makes a retriever of the former.

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
from .embeddings import LangChainEmbedder
from .turns import Turn, Turns
from .values import id_of, matches, opened, pushed_down

require("langchain", "rmem.integrations.langchain")

from langchain_core.chat_history import BaseChatMessageHistory  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict  # noqa: E402
from langchain_core.vectorstores import VectorStore  # noqa: E402
from langchain_core.vectorstores.utils import maximal_marginal_relevance  # noqa: E402

DOCUMENT, MESSAGE = "langchain_document", "langchain_message"
"""Types of memories: a document of a vector store, a message of a chat."""

_MOST_HITS = 1000  # of one recall; a server gives no more


class BrainVectorStore(VectorStore):
    """Documents of LangChain in a Brain, which may be given as itself or by its address.

    Without `embedding`, documents are found by the Brain's hybrid recall. With it, which goes with an address, they are
    found by cosine alone, as in other vector stores; `mode="hybrid"` adds the words. A `filter` is a mapping of
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
        self.brain, self._owned = opened(brain, None if embedding is None else LangChainEmbedder(embedding))

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
        """Keep texts as memories in one transaction for each thousand; a text with a known id replaces the old one."""
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
        """A store with these texts. Further arguments are those of the class."""
        store = cls(brain, embedding=embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # Reading

    def _id_of(self, key: str) -> str:
        return id_of("langchain", self.collection, key)

    def _where(self, wanted: Any = None) -> Filter:
        attributes = pushed_down(wanted, "document") if isinstance(wanted, dict) else {}
        return Filter.of({"agent": self.collection, "type": DOCUMENT, "attributes": attributes})

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents that there are, in the order of their ids."""
        found = self.brain.get_many([self._id_of(key) for key in ids])
        return [_document(memory) for memory in found if memory is not None]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The documents that best answer a question."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """The same with scores, higher for better ones: cosines with an embedding of LangChain's."""
        return [(document, score) for document, score, *_ in self._found(query, k, **kwargs)]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The same with how likely each answers, from 0 to 1."""
        kwargs.pop("score_threshold", None)  # the caller applies it
        return [(document, relevance) for document, _, relevance, _ in self._found(query, k, **kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """The documents whose vectors are nearest to one."""
        found = self._found("vector", k, vector=embedding, mode="vector", **kwargs)
        return [document for document, *_ in found]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """The best documents that differ from each other."""
        if self._embedding is not None:
            vector = self._embedding.embed_query(query)
        else:
            given = self.brain.vector_of(query)
            vector = [] if given is None else given.tolist()
        found = self._found(query, fetch_k, **kwargs)
        return self._diverse(vector, found, k, lambda_mult) if vector else [one for one, *_ in found[:k]]

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        found = self._found("vector", fetch_k, vector=embedding, mode="vector", **kwargs)
        return self._diverse(embedding, found, k, lambda_mult)

    def _diverse(
        self, vector: list[float], found: list[tuple[Document, float, float, Memory]], k: int, lambda_mult: float
    ) -> list[Document]:
        with_vector = [one for one in found if one[3].vector is not None]
        asked = np.asarray(_padded(vector), np.float32)
        vectors = [one[3].vector for one in with_vector]
        return [with_vector[at][0] for at in maximal_marginal_relevance(asked, vectors, lambda_mult, k)]

    def _found(
        self,
        query: str,
        k: int,
        *,
        filter: Any = None,
        vector: list[float] | None = None,
        mode: Mode | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float, float, Memory]]:
        """(document, score, relevance, memory), best first. Further options go to `Brain.recall`."""
        if not query.strip():
            return []
        where = self._where(filter)
        options: dict[str, Any] = {"where": where, "mode": mode or self._mode, **kwargs}
        if vector is not None:
            options["vector"] = _padded(vector)
        asked = min(k, _MOST_HITS)
        while True:
            hits = self.brain.recall(query, k=asked, **options)
            found = [(_document(hit.memory), hit.score, hit.relevance or 0.0, hit.memory) for hit in hits]
            if callable(filter):
                found = [one for one in found if filter(one[0])]
            elif filter:
                found = [one for one in found if matches(one[0].metadata, filter)]
            if len(found) >= k or len(hits) < asked or asked == _MOST_HITS:
                return found[:k]
            asked = min(_MOST_HITS, 4 * asked)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()


def _document(memory: Memory) -> Document:
    own = memory.contents
    return Document(id=own["key"], page_content=own.get("blank", memory.text), metadata=own["document"])


def _padded(vector: Sequence[float]) -> list[float]:
    return [*vector, *[0.0] * (8 - len(vector))]  # as LangChainEmbedder does


class BrainChatHistory(BaseChatMessageHistory):
    """The messages of one chat, each a memory with its session: `RunnableWithMessageHistory(chain, BrainChatHistory)`.

    Messages without words, such as calls of tools, are kept too; they are found by the name of their role.
    """

    def __init__(self, session_id: str, brain: Brain | str | Path | None = None, *, agent: str = "langchain") -> None:
        self.session_id = session_id
        self._turns = Turns(brain, MESSAGE, agent=agent, under="message")
        self.brain = self._turns.brain

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        read: list[BaseMessage] = messages_from_dict(self._turns.read(self.session_id))
        return read

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep messages in one transaction."""
        turns = [Turn(message.type, message.text, message_to_dict(message)) for message in messages]
        self._turns.add(turns, self.session_id)

    def clear(self) -> None:
        self._turns.clear(self.session_id)

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        self._turns.close()
