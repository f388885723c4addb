"""Every engine passes one suite, unchanged."""

from __future__ import annotations

import pytest
from vector_engines import ENGINES

from rmem.errors import StoreUnreachableError
from rmem.testing import VectorIndexContract


@pytest.mark.parametrize("engine", ENGINES)
class TestEngines(VectorIndexContract):
    @pytest.fixture
    def index(self, engine, engine_index):
        return engine_index(engine)


def test_a_wrong_key_of_milvus_is_refused(engine_index, monkeypatch):
    index = engine_index("milvus-server")
    monkeypatch.setenv("RMEM_VECTORS_TOKEN", "root:wrong")
    with pytest.raises(StoreUnreachableError, match="RMEM_VECTORS_TOKEN holds its key"):
        index.count()
