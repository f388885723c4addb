"""Vectors in any LangChain VectorStore, such as Pinecone, Weaviate or Chroma.

Such a store embeds texts itself and has no common method to add vectors. It therefore gets Embeddings of ours, which
return the vector of a number; the stored text is that number, never the text of a memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from typing import Any

from ..errors import StoreUnreachableError
from ..extras import require
from .base import FieldFilter, Fields, Matrix, Vector, VectorIndex, check_batch, check_dimension, translate_errors

_BATCH = 512
_QUERY = "asked"


class LangChainIndex(VectorIndex):
    """`LangChainIndex(InMemoryVectorStore)`, `LangChainIndex(lambda given: Chroma("notes", given))`: a function that
    makes the store from LangChain Embeddings. Fields are stored as metadata, but filters are applied afterwards: each
    store has a filter language of its own."""

    filters = False
    exact = False  # some return distances, some similarities

    def __init__(self, make: Callable[[Any], Any]) -> None:
        require("langchain", "a LangChain VectorStore")
        self._embeddings = _prepared_embeddings()
        self._vector_store = make(self._embeddings)
        self.name = f"langchain:{type(self._vector_store).__name__}"
        self._dimension: int | None = None

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        from langchain_core.documents import Document

        self._dimension = check_batch(self.name, ids, vectors, fields, self._dimension)
        last = {str(number): at for at, number in enumerate(ids)}  # the last entry of a number wins
        for names in _batches(list(last)):
            documents = [Document(page_content=name, metadata=fields[last[name]]._asdict(), id=name) for name in names]
            with translate_errors(self.name), self._embeddings.use({name: vectors[last[name]] for name in names}):
                self._vector_store.add_documents(documents, ids=names)

    def delete(self, ids: Sequence[int]) -> None:
        for names in _batches([str(number) for number in ids]):
            with translate_errors(self.name):
                if self._vector_store.delete(ids=names) is False:
                    raise StoreUnreachableError(f"{self.name} did not remove {len(names)} vectors")

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        check_dimension(self.name, vector.size, self._dimension)
        with translate_errors(self.name), self._embeddings.use({_QUERY: vector}):
            found = self._vector_store.similarity_search_with_score(_QUERY, k=k)
        return [(int(document.page_content), float(score)) for document, score in found]

    def clear(self, known: Sequence[int] = ()) -> None:
        reset: Callable[[], object] | None = getattr(self._vector_store, "reset_collection", None)  # Chroma and others
        if reset is None:
            self.delete(known)
        else:
            with translate_errors(self.name):
                reset()
        self._dimension = None


def _batches(names: list[str]) -> list[list[str]]:
    return [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]


def _prepared_embeddings() -> Any:
    """Make LangChain Embeddings that return vectors set beforehand in the same thread."""
    from langchain_core.embeddings import Embeddings

    class ThreadVectors(local):
        vectors: dict[str, Vector] | None = None

    class PreparedEmbeddings(Embeddings):  # type: ignore[misc]  # the library may be absent
        def __init__(self) -> None:
            self._prepared = ThreadVectors()

        def use(self, vectors: dict[str, Vector]) -> PreparedEmbeddings:
            self._prepared.vectors = vectors
            return self

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            self._prepared.vectors = None

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self._prepared.vectors is None:
                raise StoreUnreachableError("this LangChain store embeds in a thread of its own and cannot be used")
            return [self._prepared.vectors[text].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return PreparedEmbeddings()
