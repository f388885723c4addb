"""The suites of `rmem.testing` as the author of a store runs them."""

from __future__ import annotations

import os
import subprocess
import sys

FORGETFUL = """
import pytest
from rmem import InMemoryStore
from rmem.testing import MemoryStoreContract

class Forgetful(InMemoryStore):
    def get(self, key):
        value = super().get(key)
        return None if value is None else value.upper()

class TestForgetful(MemoryStoreContract):
    @pytest.fixture
    def store(self):
        return Forgetful()

    @pytest.fixture
    def reopen(self):
        return Forgetful
"""


def test_a_failure_shows_what_was_compared_and_what_is_lost_on_closing_fails(tmp_path):
    (tmp_path / "test_forgetful.py").write_text(FORGETFUL, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "-k",
        "gives_back or opened_again",
    ]
    done = subprocess.run([*command, "--rootdir", ".", "-c", os.devnull, "test_forgetful.py"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=120)  # fmt: skip
    assert "assert 'THE FIRST VALUE' == 'the first value'" in done.stdout, done.stdout
    assert (
        "FAILED test_forgetful.py::TestForgetful::test_what_was_added_is_there_when_it_is_opened_again" in done.stdout
    )
    assert "2 failed" in done.stdout
