"""Vectors in a FAISS index in this process, and in a file if a path is given. One process at a time can use a file.

Indexes that cannot remove vectors, such as HNSW, are refused: forgetting needs it."""

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
    translate_errors,
)

_CELLS = 16  # searched of an IVF index
TRAIN_FROM = 10_000  # vectors


class FaissIndex(VectorIndex):
    """`FaissIndex()`, `FaissIndex("vectors.faiss")`, `FaissIndex(kind="SQ8")` (a byte for each number) or
    `FaissIndex(kind="IVF256,Flat")` (cells). `kind` is a string for FAISS's index_factory; with fewer than TRAIN_FROM
    vectors the index is flat and compares all."""

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
        self._trained = False
        self._lock_file: BinaryIO | None = None
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
        self._lock_file = path.with_name(f"{path.name}.lock").open("ab")
        try:
            lock(self._lock_file.fileno(), wait=False)
        except OSError:
            self._lock_file.close()
            raise StoreUnreachableError(
                f"{path} is in use by another process: a FAISS file has one at a time. Several can share "
                "milvus, pgvector or a server of qdrant"
            ) from None
        if path.exists():
            with translate_errors(self.name):
                self._index = self._faiss.read_index(str(path))
                inner = getattr(self._index, "index", None)
                self._trained = not isinstance(
                    self._faiss.downcast_index(inner) if inner else None, self._faiss.IndexFlat
                )
                self.exact = not self._trained

    @property
    def _dimension(self) -> int | None:
        return None if self._index is None else int(self._index.d)

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with self._lock, translate_errors(self.name):
            dimension = check_batch(self.name, ids, vectors, fields, self._dimension)
            if not len(ids):
                return
            if self._index is None:
                self._index = self._new("Flat", dimension)
            rows = np.ascontiguousarray(vectors, np.float32)
            last = {number: row for row, number in enumerate(ids)}  # the last entry of a number wins
            numbers = np.fromiter(last, np.int64, len(last))
            self._index.remove_ids(numbers)
            self._index.add_with_ids(rows[list(last.values())], numbers)
            if self._kind != "Flat" and not self._trained and self._index.ntotal >= TRAIN_FROM:
                self._train()

    def _new(self, kind: str, dimension: int) -> Any:
        made = self._faiss.index_factory(dimension, kind, self._faiss.METRIC_INNER_PRODUCT)
        if "IVF" not in kind:
            return self._faiss.IndexIDMap2(made)
        made.nprobe = _CELLS  # no IndexIDMap2: an IVF index stores ids itself
        return made

    def _train(self) -> None:
        """Replace the flat index by the requested kind, which must be trained on many vectors."""
        flat = self._index
        ids = self._faiss.vector_to_array(flat.id_map).copy()
        vectors = flat.index.reconstruct_n(0, flat.ntotal)
        index = self._new(self._kind, flat.d)
        index.train(vectors)
        index.add_with_ids(vectors, ids)
        self._index, self._trained, self.exact = index, True, False

    def delete(self, ids: Sequence[int]) -> None:
        with self._lock, translate_errors(self.name):
            if self._index is not None and len(ids):
                self._index.remove_ids(np.asarray(ids, np.int64))

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with self._lock, translate_errors(self.name):
            if self._index is None or not self._index.ntotal:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            scores, ids = self._index.search(np.ascontiguousarray(vector[None, :]), min(k, self._index.ntotal))
            found = zip(ids[0].tolist(), scores[0].tolist(), strict=True)
            return [(number, score) for number, score in found if number >= 0]

    def clear(self, known: Sequence[int] = ()) -> None:
        with self._lock:
            self._index, self._trained, self.exact = None, False, True
            if self._path is not None:
                self._path.unlink(missing_ok=True)

    def count(self) -> int:
        return 0 if self._index is None else int(self._index.ntotal)

    def flush(self) -> None:
        """Write the whole file, atomically."""
        with self._lock, translate_errors(self.name):
            if self._path is not None and self._index is not None and self._lock_file is not None:
                partial = self._path.with_name(f"{self._path.name}.partial")
                self._faiss.write_index(self._index, str(partial))
                os.replace(partial, self._path)

    def close(self) -> None:
        with self._lock:
            if self._lock_file is not None:
                try:
                    self.flush()
                finally:
                    self._lock_file.close()
                    self._lock_file = None
