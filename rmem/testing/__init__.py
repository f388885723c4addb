"""Tests for stores and vector engines of your own, and synthetic memories; this module is the list of public names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

_HOMES = {
    "MemoryStoreContract": "testing.contract",
    "RecordStoreContract": "testing.contract",
    "VectorIndexContract": "testing.vectors",
    "synthetic_memories": "testing.synthetic",
    "synthetic_questions": "testing.synthetic",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .contract import MemoryStoreContract as MemoryStoreContract
    from .contract import RecordStoreContract as RecordStoreContract
    from .synthetic import synthetic_memories as synthetic_memories
    from .synthetic import synthetic_questions as synthetic_questions
    from .vectors import VectorIndexContract as VectorIndexContract
else:
    _load, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name):
        if name.endswith("Contract"):
            import pytest

            suites = (f"{__name__}.{module}" for module in ("contract", "values", "capabilities", "vectors"))
            # Or a failure would not show what was compared.
            pytest.register_assert_rewrite(*(suite for suite in suites if suite not in sys.modules))
        return _load(name)
