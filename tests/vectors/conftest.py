"""Indexes of each engine for the tests of this folder."""

from __future__ import annotations

import pytest
from vector_engines import new_index, pgvector_address


@pytest.fixture(scope="session")
def milvus_address(tmp_path_factory):
    """The address of a real Milvus server that asks for a password; the package `milvus` carries its program."""
    milvus = pytest.importorskip("milvus", reason="milvus is not installed")
    server = milvus.MilvusServer()
    server.config.set("authorization_enabled", True)
    server.set_base_dir(str(tmp_path_factory.mktemp("milvus")))
    server.start()
    yield f"milvus://127.0.0.1:{server.listen_port}"
    server.stop()


@pytest.fixture
def engine_index(tmp_path, request, monkeypatch):
    """A function from an engine's name to an empty index, closed at the end."""
    opened = []

    def make(engine):
        address = None
        if engine == "pgvector":
            pytest.importorskip("pgvector", reason="pgvector is not installed")
            address = pgvector_address(request.getfixturevalue("postgres_url"))
        if engine == "milvus-server":
            pytest.importorskip("pymilvus", reason="pymilvus is not installed")
            monkeypatch.setenv("RMEM_VECTORS_TOKEN", "root:Milvus")
            address = f"{request.getfixturevalue('milvus_address')}?collection=t{abs(hash(tmp_path))}&partitions=4"
        opened.append(new_index(engine, tmp_path, address))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
