"""Tests for stores and vector engines of your own, and synthetic memories; this module is the list of public names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contract import MemoryStoreContract, RecordStoreContract
    from .synthetic import synthetic_memories, synthetic_questions
    from .vectors import VectorIndexContract

__all__ = [
    "MemoryStoreContract",
    "RecordStoreContract",
    "VectorIndexContract",
    "synthetic_memories",
    "synthetic_questions",
]

_HOMES = {
    "MemoryStoreContract": "contract",
    "RecordStoreContract": "contract",
    "VectorIndexContract": "vectors",
    "synthetic_memories": "synthetic",
    "synthetic_questions": "synthetic",
}


def __getattr__(name: str) -> object:
    """Load a name at first use: only the test suites need pytest."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rmem.testing' has no attribute {name!r}")
    from importlib import import_module

    if name.endswith("Contract"):
        import pytest

        suites = (f"{__name__}.{module}" for module in ("contract", "values", "capabilities", "vectors"))
        # Or a failure would not show what was compared.
        pytest.register_assert_rewrite(*(suite for suite in suites if suite not in sys.modules))
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
