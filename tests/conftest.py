"""What all tests share: a home folder of their own, and how much hypothesis may spend."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "remanence",
    deadline=None,
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("remanence"), max_examples=1000)
settings.load_profile("remanence")


@pytest.fixture(autouse=True)
def _home_of_its_own(tmp_path_factory, monkeypatch):
    """No test reads or writes the memories of whoever runs it."""
    monkeypatch.setenv("REMANENCE_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("REMANENCE_EMBEDDER", raising=False)
