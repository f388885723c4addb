"""Vectors in an engine of their own: `open_vectors` finds the index for an address. Each engine is one module, loaded
when it is used; `base` is the contract, `follower` keeps an index in step with a store, `rows` lets recall ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from .base import VectorIndex

KNOWN = "milvus://…, qdrant://…, faiss://…, pgvector://… or a VectorIndex"


def open_vectors(address: str, collection: str) -> VectorIndex:
    """The index behind an address, which may name a collection of its own: `…?collection=name`."""
    scheme, separator, _ = address.partition("://")
    if separator and scheme == "milvus":
        from .milvus import MilvusIndex

        return MilvusIndex.at(address, collection)
    if separator and scheme == "qdrant":
        from .qdrant import QdrantIndex

        return QdrantIndex.at(address, collection)
    if separator and scheme == "faiss":
        from .faiss import FaissIndex

        return FaissIndex.at(address)
    if separator and scheme == "pgvector":
        from .pgvector import PgvectorIndex

        return PgvectorIndex.at(address, collection)
    raise ConfigError(f"vectors must be {KNOWN}; got {scheme if separator else address!r}")
