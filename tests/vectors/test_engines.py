"""Every engine passes one suite, unchanged."""

from __future__ import annotations

import pytest
from vector_engines import ENGINES

from rmem.testing import VectorIndexContract


@pytest.mark.parametrize("engine", ENGINES)
class TestEngines(VectorIndexContract):
    @pytest.fixture
    def index(self, engine, engine_index):
        return engine_index(engine)
