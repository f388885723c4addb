"""Vectors in any LangChain VectorStore: Pinecone, Weaviate, Chroma and the rest.

Such a store embeds texts by itself and has no common way to be given vectors. So it is made with embeddings of ours,
which hand over the vector that belongs to a text; the text that it keeps is a number, and none of the memory's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from typing import Any

from ..errors import StoreUnreachableError
from ..extras import require
from .base import FieldFilter, Fields, Matrix, Vector, VectorIndex, check_batch, check_dimension, reaching

_BATCH = 512
_ASKED = "asked"


class LangChainIndex(VectorIndex):
    """`LangChainIndex(InMemoryVectorStore)`, `LangChainIndex(lambda given: Chroma("notes", given))`: a function that
    makes the store from LangChain Embeddings. Fields are kept as metadata, but each store has a language of its own for
    filters, so that ours are applied to its answers."""

    filters = False
    exact = False  # some answer with distances, some with likenesses

    def __init__(self, make: Callable[[Any], Any]) -> None:
        require("langchain", "a LangChain VectorStore")
        self._given = _given_vectors()
        self._vector_store = make(self._given)
        self.name = f"langchain:{type(self._vector_store).__name__}"
        self._dimension: int | None = None

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        from langchain_core.documents import Document

        self._dimension = check_batch(self.name, ids, vectors, fields, self._dimension)
        last = {str(number): at for at, number in enumerate(ids)}  # of a number that comes twice the last one counts
        for names in _parts(list(last)):
            documents = [Document(page_content=name, metadata=fields[last[name]]._asdict(), id=name) for name in names]
            with reaching(self.name), self._given.handing({name: vectors[last[name]] for name in names}):
                self._vector_store.add_documents(documents, ids=names)

    def delete(self, ids: Sequence[int]) -> None:
        for names in _parts([str(number) for number in ids]):
            with reaching(self.name):
                if self._vector_store.delete(ids=names) is False:
                    raise StoreUnreachableError(f"{self.name} did not remove {len(names)} vectors")

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        check_dimension(self.name, vector.size, self._dimension)
        with reaching(self.name), self._given.handing({_ASKED: vector}):
            found = self._vector_store.similarity_search_with_score(_ASKED, k=k)
        return [(int(document.page_content), float(score)) for document, score in found]

    def clear(self, known: Sequence[int] = ()) -> None:
        reset: Callable[[], object] | None = getattr(self._vector_store, "reset_collection", None)  # Chroma and others
        if reset is None:
            self.delete(known)
        else:
            with reaching(self.name):
                reset()
        self._dimension = None


def _parts(names: list[str]) -> list[list[str]]:
    return [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]


def _given_vectors() -> Any:
    """LangChain Embeddings that answer with vectors which are at hand in this thread."""
    from langchain_core.embeddings import Embeddings

    class Handed(local):
        vectors: dict[str, Vector] | None = None

    class GivenVectors(Embeddings):  # type: ignore[misc]  # the library may be absent
        def __init__(self) -> None:
            self._handed = Handed()

        def handing(self, vectors: dict[str, Vector]) -> GivenVectors:
            self._handed.vectors = vectors
            return self

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            self._handed.vectors = None

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self._handed.vectors is None:
                raise StoreUnreachableError("this LangChain store embeds in a thread of its own and cannot be used")
            return [self._handed.vectors[text].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return GivenVectors()
