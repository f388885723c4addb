import pytest

from rmem import Brain


@pytest.fixture(params=["sqlite", "postgres", "memory"])
def address(request, tmp_path):
    """Each of the stores that keep facts."""
    if request.param == "memory":
        return ":memory:"
    return str(tmp_path / "facts.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def brain(address):
    with Brain(address) as brain:
        yield brain


@pytest.fixture
def graph(brain):
    return brain.graph
