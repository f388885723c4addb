"""One empty index for each engine that is installed; `make test-vectors` has them all."""

from __future__ import annotations

import pytest

from rmem.vectors import open_vectors
from rmem.vectors.memory import MemoryIndex

ENGINES = (
    "memory",
    "faiss",
    "faiss-sq8",
    "faiss-file",
    "qdrant",
    "qdrant-folder",
    "milvus",
    "milvus-server",
    "pgvector",
    "langchain",
    "chroma",
)
"""Every engine by its name in these tests."""


def new_index(engine, tmp_path, address=None):
    """An index, or a skip that names what is not installed; `address` is that of a server."""
    if engine == "memory":
        return MemoryIndex()
    if engine.startswith("faiss"):
        pytest.importorskip("faiss", reason="faiss-cpu is not installed")
        kind = "?index=SQ8" if engine == "faiss-sq8" else ""
        return open_vectors(f"faiss:///{tmp_path / 'v.faiss' if engine == 'faiss-file' else ''}{kind}", "tests")
    if engine.startswith("qdrant"):
        pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
        place = ":memory:" if engine == "qdrant" else f"/{tmp_path / 'qdrant'}"
        return open_vectors(f"qdrant://{place}", "tests")
    if engine == "milvus":
        pytest.importorskip("pymilvus", reason="pymilvus is not installed")
        pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")
        return open_vectors(f"milvus:///{tmp_path / 'v.db'}?partitions=4", "tests")
    if address is not None:
        return open_vectors(address, "tests")
    from rmem.vectors.langchain import LangChainIndex

    if engine == "langchain":
        stores = pytest.importorskip("langchain_core.vectorstores", reason="langchain-core is not installed")
        return LangChainIndex(stores.InMemoryVectorStore)
    chroma = pytest.importorskip("langchain_chroma", reason="langchain-chroma is not installed")
    return LangChainIndex(
        lambda given: chroma.Chroma(
            f"t{abs(hash(tmp_path))}", given, persist_directory=str(tmp_path / "chroma"),
            collection_configuration={"hnsw": {"space": "cosine"}},
        )
    )  # fmt: skip


def pgvector_address(url: str) -> str:
    """The same database by the address of an index."""
    from psycopg.conninfo import conninfo_to_dict

    told = conninfo_to_dict(url)
    socket = told.get("host", "")
    place = f"?socket={socket}" if socket.startswith("/") else ""
    host = "" if place else f"{socket}{':' + str(told['port']) if told.get('port') else ''}"
    user = f"{told['user']}@" if told.get("user") else ""
    return f"pgvector://{user}{host}/{told['dbname']}{place}"
