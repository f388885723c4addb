"""Facts as they are read from a memory and as a store keeps them, and the names of what they are about.

A fact is *subject, relation, object*: `staging`, `runs on`, `port 5433`. Its evidence is one memory, which it is kept
and removed with. Nothing else is stored about a fact: whether a later one replaced it is found out when it is read.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

STATED, SURE, LIKELY = 1.0, 0.9, 0.6
"""How far to trust a fact: said as one, read by a rule that is nearly always right, or by one that often is."""


class FoundFact(NamedTuple):
    """A fact as it was read from a memory."""

    subject: str
    relation: str
    object: str
    is_value: bool = False
    """Whether the object is a number, a date or words, and not an entity that facts can be about."""
    confidence: float = SURE
    start: int = 0
    end: int = 0
    """The place of the statement in the text; both 0 where it was read from other fields."""
    valid_from: float | None = None
    """When it became true; None if nothing was said, which counts from the time of the memory."""
    valid_until: float | None = None
    negated: bool = False
    single: bool = False
    """Whether the words say that there is one value: "the capital of X is Y"."""


class StoredFact(NamedTuple):
    """A fact as a store keeps it. Subject, relation and object are told apart by the ids that `name_id` gives."""

    seq: int
    """The row of the memory that is its evidence."""
    number: int
    """Which of the facts of that memory."""
    subject: int
    relation: int
    object: int
    flags: int
    confidence: float
    start: int
    end: int
    valid_from: float
    valid_until: float | None
    learned_at: float
    subject_name: str
    relation_name: str
    object_name: str
    memory_id: str
    agent: str
    place: str | None = None
    """That of the memory: who may see it, where several share a store."""
    tags: str | None = None
    """JSON; None where there are none or they are encrypted."""

    @property
    def is_value(self) -> bool:
        return bool(self.flags & VALUE)

    @property
    def negated(self) -> bool:
        return bool(self.flags & NEGATED)

    @property
    def single(self) -> bool:
        return bool(self.flags & SINGLE)

    @property
    def is_dated(self) -> bool:
        """Whether `valid_from` was said; otherwise it is the time of the memory."""
        return bool(self.flags & DATED)


VALUE, NEGATED, SINGLE, DATED = 1, 2, 4, 8


class FactEdges(NamedTuple):
    """All facts of a store as numbers, for algorithms that need the whole graph."""

    subject: npt.NDArray[np.int64]
    relation: npt.NDArray[np.int64]
    object: npt.NDArray[np.int64]
    flags: npt.NDArray[np.int64]


def flags_of(fact: FoundFact) -> int:
    """The marks of a fact in one number, as stores keep them."""
    dated = DATED if fact.valid_from is not None else 0
    return VALUE * fact.is_value | NEGATED * fact.negated | SINGLE * fact.single | dated


_SEPARATORS = re.compile(r"[\s_\-‐-―]+")
_ARTICLE = re.compile(r"^(?:the|a|an) (?=.)")
_EDGES = " \t\n\"'`“”‘’«»()[]{}<>,;:!?"


@lru_cache(maxsize=1 << 14)
def name_key(name: str) -> str:
    """What different spellings of one name have in common: "The Staging-DB" and "staging db" are one entity."""
    plain = unicodedata.normalize("NFKC", name).casefold().strip(_EDGES)
    plain = _SEPARATORS.sub(" ", plain).strip(_EDGES)
    plain = plain.removesuffix("'s").removesuffix("’s")
    if plain.endswith(".") and "." not in plain[:-1]:
        plain = plain[:-1]
    return _ARTICLE.sub("", plain)


@lru_cache(maxsize=1 << 14)
def name_id(name: str) -> int:
    """The number under which stores keep a name: 64 bits of a hash of its key, signed as databases like it."""
    return int.from_bytes(blake2b(name_key(name).encode(), digest_size=8).digest(), "little", signed=True)
