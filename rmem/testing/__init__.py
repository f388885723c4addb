"""For the tests of others: the suites of stores and of vector engines, and synthetic memories by the thousand."""

from __future__ import annotations

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
    """Only the suite needs pytest, so it is loaded when it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'rmem.testing' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
