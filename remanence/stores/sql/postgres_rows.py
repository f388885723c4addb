"""Rows on their way into PostgreSQL: those of `rows.py`, with what its own search needs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from ...index.analyser import plain, term_hash
from ...models import Memory
from ..indexed import Derived
from ..packing import full_vector
from . import rows
from .postgres_link import Connection

_EXTRA = ("run", "lexemes", "counts", "length", "variety", "embedding")
_TOGETHER = 64  # rows in one statement


def insert(
    connection: Connection, waiting: Sequence[tuple[Memory, Derived, tuple[Any, ...]]], dimension: int | None
) -> None:
    """Write rows, and by that their postings and words."""
    for start in range(0, len(waiting), _TOGETHER):
        part = waiting[start : start + _TOGETHER]
        values = [value for memory, derived, row in part for value in (*row, *_extra(memory, derived, dimension))]
        connection.execute(_inserting(len(part)), values)


@lru_cache(_TOGETHER)
def _inserting(count: int) -> str:
    columns = (*rows.COLUMNS, *_EXTRA)
    one = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO memories ({', '.join(columns)}) VALUES {', '.join([one] * count)}"


def _extra(memory: Memory, derived: Derived, dimension: int | None) -> tuple[Any, ...]:
    vector = full_vector(memory, dimension)
    return (
        run_of(memory.agent_id, memory.session),
        *lexemes_of(derived, memory.actor),
        None if vector is None else HalfVector(vector),
    )


def embed(connection: Connection, dimension: int | None) -> None:
    """Write what the search for vectors reads, from the vectors themselves."""
    last = 0
    sql = "SELECT seq, vector, level FROM memories WHERE seq > ? ORDER BY seq LIMIT 1000"
    while batch := connection.execute(sql, (last,)).fetchall():
        found = [(rows.vector_of(stored, level, dimension), seq) for seq, stored, level in batch]
        connection.executemany(
            "UPDATE memories SET embedding = ? WHERE seq = ?",
            [(None if vector is None else HalfVector(vector), seq) for vector, seq in found],
        )
        last = batch[-1][0]


def lexemes_of(derived: Derived, actor: str | None) -> tuple[list[int], list[int], int, int]:
    """All terms and marks of a row, how often it holds each (a mark: 0 times), its length, and how many are terms."""
    terms = derived.terms
    spoken = None if actor is None else plain(actor)
    acting = np.array([actor_mark(spoken)] if spoken else [], np.uint64)
    lexemes = signed(np.concatenate([terms.hashes, derived.marks, acting]))
    counts = [*terms.counts.tolist(), *([0] * (len(lexemes) - terms.hashes.size))]
    return lexemes, counts, int(terms.length), int(terms.hashes.size)


def actor_mark(spoken: str) -> int:
    """The mark of the rows of an actor, by the plain form of the name."""
    return term_hash(f"actor\x00{spoken}")


def signed(hashes: npt.NDArray[np.uint64]) -> list[int]:
    """Hashes as PostgreSQL keeps them, whose numbers have a sign."""
    found: list[int] = hashes.astype(np.uint64, copy=False).view(np.int64).tolist()
    return found


def unsigned(hashes: Sequence[int]) -> npt.NDArray[np.uint64]:
    return np.array(hashes, np.int64).view(np.uint64)


def run_of(agent: str, session: str | None) -> int | None:
    """The number of a session, by which its rows are found in their order; None outside any."""
    if session is None:
        return None
    return signed(np.array([term_hash(f"{agent}\x00{session}")], np.uint64))[0]
