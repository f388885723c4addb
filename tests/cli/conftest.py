from __future__ import annotations

from pathlib import Path

import pytest
from rmem_runner import Rmem


@pytest.fixture
def rmem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rmem:
    monkeypatch.delenv("RMEM_EMBEDDER", raising=False)
    monkeypatch.chdir(tmp_path)
    return Rmem(tmp_path / "home")
