"""Master keys, and what a store with one leaves on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmem import Encryption
from rmem.crypto.encryption import MASTER_KEY, MASTER_KEY_FILE, new_master_key


@pytest.fixture(autouse=True)
def _no_key_of_the_environment(monkeypatch):
    monkeypatch.delenv(MASTER_KEY, raising=False)
    monkeypatch.delenv(MASTER_KEY_FILE, raising=False)


@pytest.fixture
def key():
    return new_master_key()


@pytest.fixture
def encryption(key):
    return Encryption(master=key)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memories.db"


@pytest.fixture
def on_disk(path):
    """A function: every byte of the store's files, the log of pages included."""

    def read() -> bytes:
        files = [file for file in Path(path).parent.iterdir() if file.name.startswith(path.name)]
        return b"\0".join(file.read_bytes() for file in files)

    return read
