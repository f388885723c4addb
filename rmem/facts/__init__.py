"""Facts in memories: what a fact is (`model`), those that were stated as such (`stated`), and how others are read
from a memory without a language model (`extract`). SQL stores call `facts_of` for every memory that they keep;
questions about facts are answered in `rmem.graph`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..models import Memory
    from .model import FoundFact

VERSION = 3
"""Version of the extraction rules. `rmem reindex` extracts again where a store holds facts of another version."""


def facts_of(memory: Memory) -> tuple[FoundFact, ...]:
    """Return all facts of a memory: the stated one, or those extracted from its text and fields."""
    try:
        stated_facts, facts_in = _readers()
    except ImportError:  # an interrupt ended the same import in another thread, and this one saw half a module
        stated_facts, facts_in = _readers()
    stated = stated_facts(memory)
    return facts_in(memory) if stated is None else stated


@cache
def _readers() -> tuple[Callable[[Memory], tuple[FoundFact, ...] | None], Callable[[Memory], tuple[FoundFact, ...]]]:
    """Import the readers of stated and of extracted facts at first use: a recall needs neither."""
    from .extract import facts_in
    from .stated import stated_facts

    return stated_facts, facts_in
