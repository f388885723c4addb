"""Vectors in a FAISS index: in this process, and in one file if a path is given. A file has one process at a time.

Every index type here can remove vectors, which forgetting needs; graphs such as HNSW cannot and are refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..errors import ConfigError, StoreUnreachableError
from ..extras import require
from ..filelocks import lock
from ..forks import new_rlock
from .base import (
    EngineAddress,
    FieldFilter,
    Fields,
    Matrix,
    Vector,
    VectorIndex,
    check_batch,
    check_dimension,
    reaching,
)

_CELLS = 16  # that a search looks into
LEARNS_FROM = 10_000  # vectors that an index of a kind with something to learn is made from


class FaissIndex(VectorIndex):
    """`FaissIndex()`, `FaissIndex("vectors.faiss")`, `FaissIndex(kind="SQ8")` (a byte for each number) or
    `FaissIndex(kind="IVF256,Flat")` (cells): a word of FAISS's index_factory. Up to LEARNS_FROM vectors all are
    compared; from then on the index is of that kind."""

    filters = False

    def __init__(self, path: str | Path | None = None, *, kind: str = "Flat") -> None:
        require("faiss", "FAISS")
        import faiss

        if "HNSW" in kind or "NSG" in kind:
            raise ConfigError(
                f"index must be Flat, SQ8 or IVF…: {kind!r} cannot remove vectors, which forgetting needs"
            )
        self._faiss: Any = faiss
        self._kind = kind
        self._path = None if path is None else Path(path).expanduser()
        self.name = f"faiss:///{self._path or ''}"
        self._lock = new_rlock()
        self._index: Any = None
        self._learned = False
        self._held: BinaryIO | None = None  # the lock
        if self._path is not None:
            self._open(self._path)

    @classmethod
    def at(cls, address: str) -> FaissIndex:
        parsed = EngineAddress(address, "rmem", ["index"])
        if parsed.host:
            raise ConfigError(f"faiss:// takes a path: faiss:///file or faiss:////absolute/file, got {address!r}")
        return cls(parsed.path or None, kind=parsed.options.get("index", "Flat"))

    def _open(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._held = path.with_name(f"{path.name}.lock").open("ab")
        try:
            lock(self._held.fileno(), wait=False)
        except OSError:
            self._held.close()
            raise StoreUnreachableError(
                f"{path} is in use by another process: a FAISS file has one at a time. Several can share "
                "milvus, pgvector or a server of qdrant"
            ) from None
        if path.exists():
            with reaching(self.name):
                self._index = self._faiss.read_index(str(path))
                inner = getattr(self._index, "index", None)
                self._learned = not isinstance(
                    self._faiss.downcast_index(inner) if inner else None, self._faiss.IndexFlat
                )
                self.exact = not self._learned

    @property
    def _dimension(self) -> int | None:
        return None if self._index is None else int(self._index.d)

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with self._lock, reaching(self.name):
            dimension = check_batch(self.name, ids, vectors, fields, self._dimension)
            if not len(ids):
                return
            if self._index is None:
                self._index = self._new("Flat", dimension)
            rows = np.ascontiguousarray(vectors, np.float32)
            last = {number: row for row, number in enumerate(ids)}  # of a number that comes twice the last one counts
            numbers = np.fromiter(last, np.int64, len(last))
            self._index.remove_ids(numbers)
            self._index.add_with_ids(rows[list(last.values())], numbers)
            if self._kind != "Flat" and not self._learned and self._index.ntotal >= LEARNS_FROM:
                self._learn()

    def _new(self, kind: str, dimension: int) -> Any:
        made = self._faiss.index_factory(dimension, kind, self._faiss.METRIC_INNER_PRODUCT)
        if "IVF" not in kind:
            return self._faiss.IndexIDMap2(made)
        made.nprobe = _CELLS  # cells know numbers themselves, and another map around them would lose its way
        return made

    def _learn(self) -> None:
        """Move from exact vectors to the kind that was asked for, which has to see many vectors first."""
        flat = self._index
        ids = self._faiss.vector_to_array(flat.id_map).copy()
        vectors = flat.index.reconstruct_n(0, flat.ntotal)
        learned = self._new(self._kind, flat.d)
        learned.train(vectors)
        learned.add_with_ids(vectors, ids)
        self._index, self._learned, self.exact = learned, True, False

    def delete(self, ids: Sequence[int]) -> None:
        with self._lock, reaching(self.name):
            if self._index is not None and len(ids):
                self._index.remove_ids(np.asarray(ids, np.int64))

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with self._lock, reaching(self.name):
            if self._index is None or not self._index.ntotal:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            scores, ids = self._index.search(np.ascontiguousarray(vector[None, :]), min(k, self._index.ntotal))
            found = zip(ids[0].tolist(), scores[0].tolist(), strict=True)
            return [(number, score) for number, score in found if number >= 0]

    def clear(self, known: Sequence[int] = ()) -> None:
        with self._lock:
            self._index, self._learned, self.exact = None, False, True
            if self._path is not None:
                self._path.unlink(missing_ok=True)

    def count(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def flush(self) -> None:
        """Write the file, whole."""
        with self._lock, reaching(self.name):
            if self._path is not None and self._index is not None and self._held is not None:
                partial = self._path.with_name(f"{self._path.name}.partial")
                self._faiss.write_index(self._index, str(partial))
                os.replace(partial, self._path)

    def close(self) -> None:
        with self._lock:
            if self._held is not None:
                try:
                    self.flush()
                finally:
                    self._held.close()
                    self._held = None
