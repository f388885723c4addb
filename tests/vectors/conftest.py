"""Indexes of each engine for the tests of this folder."""

from __future__ import annotations

import pytest
from vector_engines import new_index, pgvector_address


@pytest.fixture
def engine_index(tmp_path, request):
    """A function from an engine's name to an empty index, closed at the end."""
    opened = []

    def make(engine):
        url = None
        if engine == "pgvector":
            pytest.importorskip("pgvector", reason="pgvector is not installed")
            url = pgvector_address(request.getfixturevalue("postgres_url"))
        opened.append(new_index(engine, tmp_path, url))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
