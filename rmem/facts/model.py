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
"""Confidence of a fact: stated as a fact, extracted by a rule that is nearly always right, or by one that often is."""


class FoundFact(NamedTuple):
    """A fact as extracted from a memory, before a store gives it ids."""

    subject: str
    relation: str
    object: str
    is_value: bool = False
    """Whether the object is a literal (a number, a date, words) and not an entity."""
    confidence: float = SURE
    start: int = 0
    end: int = 0
    """Character range of the statement in the text; 0 and 0 if it comes from other fields."""
    valid_from: float | None = None
    """When it became true (Unix seconds); None if not said: then the time of the memory counts."""
    valid_until: float | None = None
    negated: bool = False
    single: bool = False
    """Whether the wording implies one value at a time: "the capital of X is Y"."""


class StoredFact(NamedTuple):
    """A fact as a store keeps it. Subject, relation and object are ids from `name_id`; the names are for display."""

    seq: int
    """Row of the memory that is the evidence."""
    number: int
    """Position among the facts of that memory, from 0."""
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
    """Place of the memory: who may see it in a shared store."""
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
        """Whether the text gives `valid_from`; otherwise it is the time of the memory."""
        return bool(self.flags & DATED)


VALUE, NEGATED, SINGLE, DATED = 1, 2, 4, 8


class FactEdges(NamedTuple):
    """All facts of a store as columns of ids, for algorithms over the whole graph."""

    subject: npt.NDArray[np.int64]
    relation: npt.NDArray[np.int64]
    object: npt.NDArray[np.int64]
    flags: npt.NDArray[np.int64]


def flags_of(fact: FoundFact) -> int:
    """Encode the boolean properties of a fact as a bit set."""
    dated = DATED if fact.valid_from is not None else 0
    return VALUE * fact.is_value | NEGATED * fact.negated | SINGLE * fact.single | dated


_SEPARATORS = re.compile(r"[\s_\-‐-―]+")
_ARTICLE = re.compile(r"^(?:the|a|an) (?=.)")
_EDGES = " \t\n\"'`“”‘’«»()[]{}<>,;:!?"


@lru_cache(maxsize=1 << 14)
def name_key(name: str) -> str:
    """Normalise a name, so that spellings match: "The Staging-DB" and "staging db" are one entity."""
    plain = unicodedata.normalize("NFKC", name).casefold().strip(_EDGES)
    plain = _SEPARATORS.sub(" ", plain).strip(_EDGES)
    plain = plain.removesuffix("'s").removesuffix("’s")
    if plain.endswith(".") and "." not in plain[:-1]:
        plain = plain[:-1]
    return _ARTICLE.sub("", plain)


@lru_cache(maxsize=1 << 14)
def name_id(name: str) -> int:
    """Return the id of a name in stores: a 64-bit hash of `name_key`, signed because SQL integers are."""
    return int.from_bytes(blake2b(name_key(name).encode(), digest_size=8).digest(), "little", signed=True)
