"""Vectors in Qdrant: a server, or the client's local mode in a folder (one process at a time) or in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..extras import require
from ..forks import new_lock, new_rlock
from .base import (
    NAME_FIELDS,
    EngineAddress,
    FieldFilter,
    Fields,
    Matrix,
    Vector,
    VectorIndex,
    check_batch,
    check_dimension,
    read_token,
    translate_errors,
)

_BATCH = 512  # points in one request


class QdrantIndex(VectorIndex):
    """`QdrantIndex(QdrantClient(…), "notes")`, or by address: "qdrant://host:6333", "qdrant:///folder",
    "qdrant://:memory:". Options: `collection`, `tls=yes`. The key of a server is RMEM_VECTORS_TOKEN."""

    def __init__(self, client: Any, collection: str = "rmem", *, name: str | None = None) -> None:
        require("qdrant", "Qdrant")
        from qdrant_client import models

        self._models: Any = models
        self._client = client
        self._collection = collection
        self.name = name or f"qdrant?collection={collection}"
        self._server = hasattr(client._client, "openapi_client")
        # The local mode is not thread-safe.
        self._local_lock: AbstractContextManager[object] = nullcontext() if self._server else new_rlock()
        self._lock = new_lock()
        self._dimension: int | None = None

    @classmethod
    def at(cls, address: str, collection: str) -> QdrantIndex:
        require("qdrant", "Qdrant")
        in_memory = address.startswith("qdrant://:memory:")
        parsed = EngineAddress(address.replace("//:memory:", "//", 1) if in_memory else address, collection, ["tls"])
        from qdrant_client import QdrantClient

        with translate_errors(parsed.shown):
            if in_memory:
                client = QdrantClient(":memory:")
            elif parsed.host:
                secure = parsed.choice("tls", ("no", "yes")) == "yes"
                client = QdrantClient(
                    url=f"{'https' if secure else 'http'}://{parsed.host}:{parsed.port or 6333}",
                    api_key=read_token(),
                    check_compatibility=False,  # it would connect, and fail if the engine is down
                )
            else:
                client = QdrantClient(path=parsed.path)
        return cls(client, parsed.collection, name=parsed.shown)

    def _get_dimension(self) -> int | None:
        """Return the dimension of the collection; None if there is no collection yet."""
        if self._dimension is None and self._client.collection_exists(self._collection):
            self._dimension = int(self._client.get_collection(self._collection).config.params.vectors.size)
        return self._dimension

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with self._local_lock, translate_errors(self.name):
            dimension = check_batch(self.name, ids, vectors, fields, self._get_dimension())
            if not len(ids):
                return
            with self._lock:
                if self._get_dimension() is None:
                    self._create(dimension)
            for start in range(0, len(ids), _BATCH):
                part = slice(start, start + _BATCH)
                points = [
                    self._models.PointStruct(id=number, vector=vector.tolist(), payload=row_fields._asdict())
                    for number, vector, row_fields in zip(ids[part], vectors[part], fields[part], strict=True)
                ]
                self._client.upsert(self._collection, points, wait=True)

    def _create(self, dimension: int) -> None:
        models = self._models
        self._client.create_collection(
            self._collection, vectors_config=models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        )
        if self._server:  # local mode has no such indexes, and warns
            for name in NAME_FIELDS:
                self._client.create_payload_index(self._collection, name, models.PayloadSchemaType.KEYWORD)
            self._client.create_payload_index(self._collection, "time", models.PayloadSchemaType.FLOAT)
        self._dimension = dimension

    def delete(self, ids: Sequence[int]) -> None:
        with self._local_lock, translate_errors(self.name):
            if len(ids) and self._get_dimension() is not None:
                self._client.delete(self._collection, self._models.PointIdsList(points=list(ids)), wait=True)

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with self._local_lock, translate_errors(self.name):
            if self._get_dimension() is None:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            found = self._client.query_points(
                self._collection,
                query=vector.tolist(),
                limit=k,
                query_filter=None if where is None else self._filter(where),
                with_payload=False,
            )
            return [(int(point.id), float(point.score)) for point in found.points]

    def _filter(self, where: FieldFilter) -> Any:
        models = self._models
        must: list[Any] = [
            models.FieldCondition(key=name, match=models.MatchAny(any=names)) for name, names in where.names.items()
        ]
        if where.since is not None or where.until is not None:
            must.append(models.FieldCondition(key="time", range=models.Range(gte=where.since, lte=where.until)))
        return models.Filter(must=must) if must else None

    def clear(self, known: Sequence[int] = ()) -> None:
        with self._local_lock, self._lock, translate_errors(self.name):
            if self._client.collection_exists(self._collection):
                self._client.delete_collection(self._collection)
            self._dimension = None

    def count(self) -> int:
        with self._local_lock, translate_errors(self.name):
            return 0 if self._get_dimension() is None else int(self._client.count(self._collection, exact=True).count)

    def close(self) -> None:
        self._client.close()
