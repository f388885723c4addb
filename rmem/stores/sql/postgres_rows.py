"""Convert memories to rows of PostgreSQL: those of `rows.py`, with the columns that its own search needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from ...index.analyser import HASH, plain, term_hash
from ...index.numbers import NO_NUMBERS
from ...index.text_features import TextFeatures
from ...models import Memory
from ..indexed import Derived
from ..packing import full_vector
from . import facts, rows
from .postgres_arrays import Array
from .postgres_link import PostgresConnection

READ = rows.READ.replace(  # one by one, by the key: before there are statistics the planner would read all counts
    "LEFT JOIN access a ON a.born = m.born",
    "LEFT JOIN LATERAL (SELECT last, count FROM access WHERE born = m.born LIMIT 1) a ON true",
)
_EXTRA = ("run", "lexemes", "counts", "length", "variety", "embedding")
_BATCH = 64  # rows in one statement


def insert(
    connection: PostgresConnection, waiting: Sequence[tuple[Memory, Derived, tuple[Any, ...]]], dimension: int | None
) -> None:
    """Write rows; triggers write their postings and words."""
    _write(
        connection,
        [
            (*row, *_extra(memory.agent_id, memory.session, memory.actor, derived, full_vector(memory, dimension)))
            for memory, derived, row in waiting
        ],
    )


def copy(connection: PostgresConnection, copied: Sequence[tuple[Any, ...]], dimension: int | None) -> None:
    """Write rows of another SQL store unchanged, with the values of rows.COLUMNS."""
    whole = []
    for row in copied:
        held = dict(zip(rows.COLUMNS, row, strict=True))
        derived = Derived(
            rows.terms_of(held["terms"], held["words"]),
            held["marks"],
            NO_NUMBERS,
            TextFeatures(held["flags"], held["specific"]),
        )
        vector = rows.vector_of(held["vector"], held["level"], dimension)
        whole.append((*row, *_extra(held["agent"], held["session"], held["actor"], derived, vector)))
    _write(connection, whole)


def insert_again(connection: PostgresConnection, seq: int, dimension: int | None) -> None:
    """Delete a row and insert it again, so that its postings and words match its terms."""
    found = connection.execute(f"SELECT {', '.join(rows.COLUMNS)} FROM memories WHERE seq = ?", (seq,)).fetchall()
    stored = connection.execute(f"SELECT {', '.join(facts.COLUMNS)} FROM facts WHERE seq = ?", (seq,)).fetchall()
    connection.execute("DELETE FROM memories WHERE seq = ?", (seq,))
    copy(connection, found, dimension)
    connection.executemany(facts.INSERT, stored)


def _write(connection: PostgresConnection, whole: Sequence[tuple[Any, ...]]) -> None:
    for start in range(0, len(whole), _BATCH):
        part = whole[start : start + _BATCH]
        connection.execute_numbered(_insert_sql(len(part)), [value for row in part for value in row])


@lru_cache(_BATCH)
def _insert_sql(count: int) -> bytes:
    columns = (*rows.COLUMNS, *_EXTRA)
    firsts = range(1, count * len(columns) + 1, len(columns))
    values = [f"({', '.join(f'${first + at}' for at in range(len(columns)))})" for first in firsts]
    return f"INSERT INTO memories ({', '.join(columns)}) VALUES {', '.join(values)}".encode()


def _extra(
    agent: str, session: str | None, actor: str | None, derived: Derived, vector: npt.NDArray[np.float32] | None
) -> tuple[Any, ...]:
    return (
        run_of(agent, session),
        *lexemes_of(derived, actor),
        None if vector is None else HalfVector(vector),
    )


def embed(connection: PostgresConnection, dimension: int | None) -> None:
    """Write the column that the vector search reads, from the vectors."""
    last = 0
    sql = "SELECT seq, vector, level FROM memories WHERE seq > ? ORDER BY seq LIMIT 1000"
    while batch := connection.execute(sql, (last,)).fetchall():
        found = [(rows.vector_of(stored, level, dimension), seq) for seq, stored, level in batch]
        connection.executemany(
            "UPDATE memories SET embedding = ? WHERE seq = ?",
            [(None if vector is None else HalfVector(vector), seq) for vector, seq in found],
        )
        last = batch[-1][0]


def lexemes_of(derived: Derived, actor: str | None) -> tuple[Array, Array, int, int]:
    """Return all terms and attribute hashes of a row, how often it holds each (attributes: 0 times), its length, and
    how many are terms."""
    terms = derived.terms
    spoken = None if actor is None else plain(actor)
    acting = np.array([actor_hash(spoken)] if spoken else [], np.uint64)
    lexemes = np.concatenate([terms.hashes, np.frombuffer(derived.attribute_hashes, HASH), acting])
    counts = np.zeros(len(lexemes), np.int32)
    counts[: terms.size] = terms.counts
    return Array(lexemes.astype(np.uint64, copy=False).view(np.int64)), Array(counts), terms.length, terms.size


def actor_hash(spoken: str) -> int:
    """Return the hash of an actor, by the plain form of the name."""
    return term_hash(f"actor\x00{spoken}")


def signed(hashes: npt.NDArray[np.uint64]) -> list[int]:
    """Hashes as PostgreSQL keeps them, whose numbers have a sign."""
    found: list[int] = hashes.astype(np.uint64, copy=False).view(np.int64).tolist()
    return found


def unsigned(hashes: Sequence[int]) -> npt.NDArray[np.uint64]:
    return np.array(hashes, np.int64).view(np.uint64)


def run_of(agent: str, session: str | None) -> int | None:
    """Return the number of a session, by which its rows are found in their order; None outside any."""
    if session is None:
        return None
    return signed(np.array([term_hash(f"{agent}\x00{session}")], np.uint64))[0]
