"""The embedder of a store: which one it is, the vectors of memories before they are written, and what happens when
another process re-embeds the store meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .embed import EmbedderSpec, embedder_of_store, spec_of
from .embed.state import MemoryVectors
from .errors import EmbedderError, EmbedderMismatchError, StoreBusyError, VectorError
from .forks import new_rlock
from .models import Embeddings, Memory, Vector
from .stores.base import Edit, Edited, RecordStore
from .stores.vectors import EmbedderIdentity, check_vectors

if TYPE_CHECKING:
    from .embed.base import Embedder

Written = TypeVar("Written")

_MAX_CONFLICTS = 20  # changes of a memory by others during one edit, before it fails
_MAX_REEMBEDDINGS = 3  # of the store by others during one write, before it fails


class _NotEmbedded(Exception):
    def __init__(self, memory: Memory) -> None:
        self.memory = memory


class StoreEmbedding:
    """Embeds what is written to a store. `wanted` is the embedder that the caller named, or None for the store's."""

    def __init__(self, store: RecordStore, wanted: EmbedderSpec) -> None:
        self._store = store
        self._wanted = wanted
        self._embedder: Embedder | None = None
        self._vectors: MemoryVectors | None = None
        self._identity: EmbedderIdentity | None = None
        self._lock = new_rlock()

    def resolve(self, *, writing: bool = False) -> Embedder | None:
        """Return the embedder of this store: the one given, else the one its vectors came from, else the default.

        Its name is read from the store each time, because another process may have re-embedded it. Writers need not:
        the store compares again in the transaction.
        """
        if writing and self._identity is not None:
            return self._embedder
        # Read outside the lock: a thread that waits for it may hold the last connection.
        known = self._store.get_meta("embedder")
        with self._lock:
            if self._identity is not None and known in (None, self._identity.name):
                return self._embedder
        spec = self._store.get_meta("embedder_spec")
        with self._lock:
            if self._wanted == "none" or (self._wanted is None and known == "none"):
                self._embedder, self._vectors, owner = None, None, EmbedderIdentity("none", "none")
            else:
                wanted = self._wanted if self._wanted is not None else spec
                if wanted is None and known is not None:
                    raise EmbedderError(
                        f"this store holds vectors of {known!r}, which cannot be loaded by name; "
                        "pass the same embedder to Brain(embedder=…)"
                    )
                self._embedder = embedder_of_store(wanted, known)
                self._vectors = MemoryVectors(self._embedder)
                owner = EmbedderIdentity(self._embedder.name, spec_of(wanted))
            owner.check(known)
            self._identity = self._store.embedder_identity = owner
            return self._embedder

    def vector_of(self, text: str, contents: Mapping[str, Any]) -> Vector | None:
        """Return the vector of a memory with this text and contents; None for a store without vectors."""
        self.resolve()
        if self._vectors is None:
            return None
        vector = self._vectors.of([(text, contents)])[0]
        return vector if vector.any() else None

    def embed_and_write(self, memories: Sequence[Memory], write: Callable[[], Written]) -> Written:
        """Embed memories and write them. If another process re-embedded the store meanwhile, repeat both."""
        bare = self.embed(memories)
        for _ in range(_MAX_REEMBEDDINGS):
            owner = self._identity
            try:
                return write()
            except (EmbedderMismatchError, VectorError):
                self.resolve()  # raises if the embedder was asked for by name
                if self._identity == owner or len(bare) < len(memories):
                    raise
                for memory in bare:
                    memory.embeddings = Embeddings()
                self.embed(memories)
        return write()

    def embed(self, memories: Sequence[Memory]) -> list[Memory]:
        """Embed memories without a vector and check the vectors of the others; return those that were embedded."""
        embedder = self.resolve(writing=True)
        bare = [memory for memory in memories if memory.embeddings.full_vector is None]
        if len(bare) < len(memories):
            self.check_given(memories, embedder)
        hidden = self._store.encryption is not None and self._store.encryption.hides_vectors
        if self._vectors is not None and bare and not hidden:
            vectors = self._vectors.of([(memory.text, memory.contents) for memory in bare])
            for memory, vector in zip(bare, vectors, strict=True):
                memory.embeddings.full_vector = vector if vector[0] or vector.any() else None
        return bare

    def check_given(self, memories: Sequence[Memory], embedder: Embedder | None) -> None:
        """Refuse given vectors of another dimension than the store's, before anything is written. What else a vector
        must be, the store checks."""
        known = self._store.get_meta("dimension") if embedder is None else embedder.dimension
        dimension = None if known is None else int(known)
        vectors = [memory.embeddings.full_vector for memory in memories]
        shapes = {np.shape(vector) for vector in vectors if vector is not None}
        if len(shapes) > 1 or (dimension is not None and shapes != {(dimension,)}):
            check_vectors(memories, dimension)

    def edit(self, memory_id: str, edit: Edit) -> Memory | None:
        """Edit a memory in the store; embed a new text that comes without a new vector."""
        vectors: dict[str, Embeddings] = {}

        def embedded(memory: Memory | None) -> Edited | None:
            text, held = (None, None) if memory is None else (memory.text, memory.embeddings)
            edited = edit(memory)
            made = None if edited is None else edited.memory
            if made is not None and made.text != text and (made.embeddings is held or _lacks_vector(made)):
                if made.text not in vectors:
                    raise _NotEmbedded(made)  # leave the transaction first: an embedder may be slow, and others wait
                made.embeddings = vectors[made.text]
            return edited

        for _ in range(_MAX_CONFLICTS):
            owner = self._identity
            try:
                return self._store.edit(memory_id, embedded)
            except _NotEmbedded as missing:
                missing.memory.embeddings = Embeddings()
                self.embed([missing.memory])
                vectors[missing.memory.text] = missing.memory.embeddings
            except (EmbedderMismatchError, VectorError):
                self.resolve()  # raises if the embedder was asked for by name
                if not vectors or self._identity == owner:
                    raise
                vectors.clear()  # another process re-embedded the store
        raise StoreBusyError(f"{memory_id} was changed by others {_MAX_CONFLICTS} times meanwhile; try again")


def _lacks_vector(memory: Memory) -> bool:
    return memory.embeddings.full_vector is None
