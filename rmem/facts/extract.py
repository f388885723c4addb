"""Placeholder until the rules land."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..models import Memory
    from .model import FoundFact


def facts_in(memory: Memory) -> tuple[FoundFact, ...]:
    return ()
