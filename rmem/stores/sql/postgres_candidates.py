"""Load the candidates of a question, with the rows around them in their sessions, into a small recall index."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...index.bits import VectorColumns
from ...index.postings import Block
from ...index.recall_index import RecallIndex
from ...models import TIERS
from . import rows
from .postgres_filters import Condition, with_blind_terms
from .postgres_link import PostgresConnection
from .postgres_rows import signed, unsigned

if TYPE_CHECKING:
    from .postgres import PostgresRecordStore

_COLUMNS = (
    "seq", "born", "agent", "session", "type", "actor", "tier", "time", "step", "importance", "length", "variety",
    "flags", "specific", "position", "vector", "level",
)  # fmt: skip
_NAMES = {"type": "kind", "variety": "distinct"}
_AROUND = """
SELECT m.seq, ARRAY(SELECT p.seq FROM memories p WHERE p.run = m.run AND p.born < m.born ORDER BY p.born DESC LIMIT ?),
    ARRAY(SELECT p.seq FROM memories p WHERE p.run = m.run AND p.born > m.born ORDER BY p.born LIMIT ?)
FROM memories m WHERE m.seq = ANY(?) AND m.run IS NOT NULL
"""
_POSTINGS = """
SELECT p.term, p.seq, p.count FROM unnest(?::bigint[]) a(term),
    LATERAL (SELECT o.term, o.seq, o.count FROM postings o WHERE o.term = a.term AND o.seq = ANY(?) OFFSET 0) p
ORDER BY p.seq
"""


def load_candidates(
    store: PostgresRecordStore,
    connection: PostgresConnection,
    seqs: Sequence[int],
    terms: Sequence[int],
    dimension: int | None,
    inside: Condition,
    steps: int,
) -> RecallIndex:
    """Build an index of some rows and of those up to some steps around them, with the postings of some terms only."""
    around = connection.execute(_AROUND, (steps, steps, list(seqs))).fetchall() if seqs else []
    wanted = {*seqs, *(seq for _, before, after in around for seq in (*before, *after))}
    sql = f"SELECT {', '.join(f'm.{name}' for name in _COLUMNS)} FROM memories m WHERE m.seq = ANY(?)"
    found = connection.execute(f"{sql}{inside.further} ORDER BY m.seq", (sorted(wanted), *inside.values)).fetchall()
    index = RecallIndex(store.word_vectors)
    store.use_keys(index)
    if not found:
        return index
    columns: dict[str, list[Any]] = {
        _NAMES.get(name, name): list(values) for name, values in zip(_COLUMNS, zip(*found, strict=True), strict=True)
    }
    _add_vectors(index, columns.pop("vector"), columns.pop("level"), dimension)
    columns["group"] = list(zip(columns.pop("agent"), columns.pop("session"), strict=True))
    columns["tier"] = [TIERS.index(tier) for tier in columns["tier"]]
    columns["position"] = [None if value is None else tuple(json.loads(value)) for value in columns["position"]]
    index.columns.append(columns)
    at = {seq: number for number, seq in enumerate(columns["seq"])}
    _link(index, at, around)
    _add_postings(index, at, connection, terms, store)
    return index


def _add_vectors(index: RecallIndex, stored: Sequence[bytes | None], levels: Sequence[int], size: int | None) -> None:
    if size is None:
        return
    matrix = np.zeros((len(stored), size), np.float32)
    for number, (value, level) in enumerate(zip(stored, levels, strict=True)):
        vector = rows.vector_of(value, level, size)
        if vector is not None and vector.size == size:
            matrix[number] = vector
    index.vectors = VectorColumns(size)
    index.vectors.append(matrix)


def _link(index: RecallIndex, at: dict[int, int], around: Sequence[tuple[int, list[int], list[int]]]) -> None:
    """Set the neighbours of rows in their sessions; rows in between may not be in the index."""
    previous, following = index.columns["previous"], index.columns["next"]
    previous[:] = following[:] = -1
    for seq, before, after in around:
        chain = [at.get(value, -1) for value in (*reversed(before), seq, *after)]
        for left, right in pairwise(chain):
            if left >= 0:
                following[left] = right
            if right >= 0:
                previous[right] = left


def _add_postings(
    index: RecallIndex,
    at: dict[int, int],
    connection: PostgresConnection,
    terms: Sequence[int],
    store: PostgresRecordStore,
) -> None:
    wanted = signed(np.array(with_blind_terms(terms, store.vault.blind_term_lookup()), np.uint64))
    found = connection.execute(_POSTINGS, (wanted, list(at))).fetchall() if wanted else []
    if found:
        hashes = unsigned([term for term, _, _ in found])
        places = np.array([at[seq] for _, seq, _ in found], np.uint32)
        counts = np.array([count for _, _, count in found], np.uint16)
        index.postings.add_block(Block.build(hashes, places, counts))
