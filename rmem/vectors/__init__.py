"""Vector engines beside a store; `open_vectors` opens the engine of an address. Each engine is a module, loaded when it
is used; `base` is their contract, `follower` synchronises one with a store, `engine_rows` searches it for recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError

if TYPE_CHECKING:
    from .base import VectorIndex

ACCEPTED = "milvus://…, qdrant://…, faiss://…, pgvector://… or a VectorIndex"


def open_vectors(address: str, collection: str) -> VectorIndex:
    """Open the engine at an address. `collection` is used unless the address names one: `…?collection=name`."""
    scheme, separator, _ = address.partition("://")
    if separator and scheme == "milvus":
        from .milvus import MilvusIndex

        return MilvusIndex(address, collection)
    if separator and scheme == "qdrant":
        from .qdrant import QdrantIndex

        return QdrantIndex.at(address, collection)
    if separator and scheme == "faiss":
        from .faiss import FaissIndex

        return FaissIndex.at(address)
    if separator and scheme == "pgvector":
        from .pgvector import PgvectorIndex

        return PgvectorIndex(address, collection)
    raise ConfigError(f"vectors must be {ACCEPTED}; got {scheme if separator else address!r}")
