"""Search inside PostgreSQL: BM25 over the postings, nearest vectors, and the candidates of a question for the recall
engine. Term statistics are those of all rows that match the filter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pgvector import HalfVector

from ...filters import Filter
from ...forks import new_lock
from ...index.analyser import Word, plain, question_words
from ...index.arrays import products
from ...index.best_scores import top
from ...index.bm25 import B, idf, saturation
from ...index.candidate_source import CandidateRequest, CandidateSource, Gathered
from ...index.filtered_rows import FilteredRows
from ...index.vocabulary import Vocabulary, WordVectors, rare_words
from .postgres_candidates import load_candidates
from .postgres_filters import Condition, with_blind_terms
from .postgres_index import TenantState, dimension_of, state
from .postgres_link import PostgresConnection
from .postgres_rows import actor_hash, signed, unsigned

if TYPE_CHECKING:
    from .postgres import PostgresRecordStore

_MAX_WORDS = 32_768  # of a tenant with soft matching; with more, only exact words match
_RERANKED = 64  # further rows whose cosines are computed from the originals
_AROUND = 2  # steps before and after a candidate
_MAX_PHRASE_ROWS = 4096
# OFFSET 0 keeps a planner without statistics from scanning all rows for their words.
_HOLDING = "(SELECT o.seq, o.count, o.length FROM postings o WHERE o.term = a.term OFFSET 0)"


class TenantVocabulary:
    """The words of a tenant, read once and updated."""

    def __init__(self, vectors: WordVectors | None) -> None:
        self._vectors = vectors
        self._lock = new_lock()
        self._known = Vocabulary(vectors)
        self._seen = 0
        self._generation = -1

    def relatives(
        self, connection: PostgresConnection, now: TenantState, words: Sequence[str]
    ) -> list[list[tuple[int, str, float]]]:
        with self._lock:
            if now.generation > self._generation:
                self._known, self._seen, self._generation = Vocabulary(self._vectors), 0, now.generation
            room = _MAX_WORDS - len(self._known)
            if room > 0 and self._seen < now.row:
                sql = "SELECT term, word FROM words WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
                found = connection.execute(sql, (self._seen, now.row, room)).fetchall()
                self._known.add(unsigned([term for term, _ in found]).tolist(), [word for _, word in found])
                self._seen = now.row
            return self._known.relatives(words)


class PostgresCandidates(CandidateSource):
    """The rows of a large tenant that match one filter."""

    def __init__(self, store: PostgresRecordStore, where: Filter) -> None:
        self._store, self._where = store, where
        self._relatives: dict[tuple[Word, ...], dict[str, list[tuple[int, str, float]]]] = {}
        self._now, self._inside, self.size, self.average_length, self.dimension = store.read(self._read_statistics)

    def _read_statistics(self, connection: PostgresConnection) -> tuple[TenantState, Condition, int, float, int | None]:
        now, inside = state(connection), self._store.condition(connection, self._where)
        rows, length = now.rows, now.length
        if inside.text:
            sql = f"SELECT count(*), coalesce(sum(m.length), 0) FROM memories m{inside.where}"
            rows, length = connection.execute(sql, inside.values).fetchone() or (0, 0)
        return now, inside, rows, float(length) / rows if rows else 0.0, dimension_of(connection)

    # Statistics

    def actors_named(self, text: str) -> list[str]:
        words = plain(text).split()[:200]
        runs = {" ".join(words[at : at + size]) for size in range(1, 5) for at in range(len(words))}
        marks = signed(np.array([actor_hash(run) for run in runs], np.uint64))
        sql = (
            f"SELECT DISTINCT n.actor FROM unnest(?::bigint[]) a(term), LATERAL (SELECT m.actor FROM {_HOLDING} p "
            f"JOIN memories m ON m.seq = p.seq{self._inside.where} LIMIT 64) n"
        )
        found = self._store.read(lambda connection: connection.execute(sql, (marks, *self._inside.values)).fetchall())
        return sorted(actor for (actor,) in found)

    def relatives(self, words: Sequence[Word]) -> dict[str, list[tuple[int, str, float]]]:
        key = tuple(words)
        if key not in self._relatives:
            rare = rare_words(words, self.row_counts([term for word in words for term in word.hashes]), self.size)
            found = self._store.read(lambda connection: self._store.vocabulary.relatives(connection, self._now, rare))
            self._relatives[key] = dict(zip(rare, found, strict=True))
        return self._relatives[key]

    def row_counts(self, terms: Sequence[int]) -> dict[int, int]:
        return self._store.read(lambda connection: self._row_counts(connection, terms))

    def _row_counts(self, connection: PostgresConnection, terms: Sequence[int]) -> dict[int, int]:
        blind_term_lookup = self._store.vault.blind_term_lookup()
        real = {known: term for term in terms for known in with_blind_terms([term], blind_term_lookup)}
        signed_terms = signed(np.array(list(real), np.uint64))
        sql = (
            "SELECT a.term, h.rows FROM unnest(?::bigint[]) a(term), "
            f"LATERAL (SELECT count(*) AS rows FROM {_HOLDING} p{self._join_sql}{self._inside.where}) h"
        )
        held = dict.fromkeys(terms, 0)
        found = connection.execute(sql, (signed_terms, *self._inside.values)).fetchall() if signed_terms else []
        for term, (_, count) in zip(unsigned([term for term, _ in found]).tolist(), found, strict=True):
            held[real[term]] += count
        return held

    @property
    def _join_sql(self) -> str:
        """The join of postings with memories that the filter needs."""
        return " JOIN memories m ON m.seq = p.seq" if self._inside.text else ""

    # Searching

    def best_words(self, query: str, k: int) -> dict[int, float]:
        """Return {seq: score} of the best rows by BM25, best first."""
        words = question_words(query)
        held = self.row_counts([term for word in words for term in word.hashes])
        weighted = [[(term, idf(self.size, held[term])) for term in word.hashes] for word in words]
        return self._store.read(lambda connection: self._by_words(connection, CandidateRequest(words=weighted), k))

    def best_vectors(self, query: npt.NDArray[np.float32], k: int) -> dict[int, float]:
        """Return {seq: cosine} of the nearest rows by the original vectors, best first."""
        seqs = np.array(
            list(self._store.read(lambda connection: self._by_vector(connection, query, 2 * k + _RERANKED))), np.int64
        )
        exact = products(self._store.vectors_at(seqs, query.size), query)
        best = top(exact, k)
        return dict(zip(seqs[best].tolist(), exact[best].tolist(), strict=True))

    def gather(self, request: CandidateRequest) -> FilteredRows:
        return self._store.read(lambda connection: self._gather(connection, request))

    def _gather(self, connection: PostgresConnection, request: CandidateRequest) -> FilteredRows:
        held = {**self._row_counts(connection, request.terms), **request.held}
        seqs = set(self._by_words(connection, request, request.side)) if request.words else set()
        seqs |= set(request.seqs)
        if request.vector is not None:
            seqs |= self._by_vector(connection, request.vector, request.side).keys()
        for phrase in request.phrases:
            seqs |= self._with_phrase(connection, phrase)
        if request.span is not None:
            seqs |= self._newest(connection, "m.time >= ? AND m.time <= ?", request.span, request.newest)
        for actor in request.actors:
            seqs |= self._of_actor(connection, actor, request.newest)
        index = load_candidates(
            self._store, connection, sorted(seqs), request.terms, self.dimension, self._inside, _AROUND
        )
        return Gathered(index, self._store, self, held)

    def _by_words(self, connection: PostgresConnection, request: CandidateRequest, count: int) -> dict[int, float]:
        blind_term_lookup = self._store.vault.blind_term_lookup()
        k1 = saturation(self.average_length)
        weighted = [
            (number, known, (k1 + 1) * weight)
            for number, word in enumerate(request.words)
            for term, weight in word
            for known in with_blind_terms([term], blind_term_lookup)
        ]
        if not weighted:
            return {}
        level = k1 * (1 - B)
        slope = k1 * B / max(self.average_length, 1e-9)
        sql = (
            "WITH best AS (SELECT p.seq, a.word, max(a.weight * p.count / (p.count + ? + ? * p.length)) AS score "
            "FROM unnest(?::int[], ?::bigint[], ?::double precision[]) a(word, term, weight) "
            f"CROSS JOIN LATERAL {_HOLDING} p{self._join_sql}{self._inside.where} GROUP BY p.seq, a.word) "
            "SELECT seq, sum(score) FROM best GROUP BY seq ORDER BY 2 DESC, 1 LIMIT ?"
        )
        words, terms, weights = zip(*weighted, strict=True)
        values = (level, slope, list(words), signed(np.array(terms, np.uint64)), list(weights))
        found = connection.execute(sql, (*values, *self._inside.values, count)).fetchall()
        return {seq: float(score) for seq, score in found}

    def _by_vector(
        self, connection: PostgresConnection, query: npt.NDArray[np.float32], count: int
    ) -> dict[int, float]:
        """Return {seq: cosine} of the approximately nearest rows. The tenant is a literal, so that its index is
        used."""
        if self.dimension is None or query.size != self.dimension:
            return {}
        kind, tenant = f"halfvec({self.dimension})", self._store.hnsw.number
        connection.execute(
            "SELECT set_config('hnsw.ef_search', ?, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)",
            (str(min(1000, max(40, count))),),
        )
        sql = (
            f"SELECT m.seq, 1 - ((m.embedding::{kind}) <=> ?::{kind}) FROM memories m WHERE m.tenant = {tenant} "
            f"AND m.embedding IS NOT NULL{self._inside.further} ORDER BY (m.embedding::{kind}) <=> ?::{kind} LIMIT ?"
        )
        half_vector = HalfVector(query)
        return dict(connection.execute(sql, (half_vector, *self._inside.values, half_vector, count)).fetchall())

    def _with_phrase(self, connection: PostgresConnection, phrase: Sequence[Sequence[int]]) -> set[int]:
        """Return the newest rows that contain all words of a phrase."""
        blind_term_lookup = self._store.vault.blind_term_lookup()
        words = [signed(np.array(with_blind_terms(word, blind_term_lookup), np.uint64)) for word in phrase]
        tests = " AND ".join("m.seq IN (SELECT p.seq FROM postings p WHERE p.term = ANY(?))" for _ in words)
        return self._newest(connection, tests, words, _MAX_PHRASE_ROWS)

    def _newest(self, connection: PostgresConnection, test: str, values: Iterable[Any], count: int) -> set[int]:
        sql = f"SELECT m.seq FROM memories m WHERE {test}{self._inside.further} ORDER BY m.seq DESC LIMIT ?"
        return {seq for (seq,) in connection.execute(sql, (*values, *self._inside.values, count))}

    def _of_actor(self, connection: PostgresConnection, actor: str, count: int) -> set[int]:
        (mark,) = signed(np.array([actor_hash(plain(actor))], np.uint64))
        sql = (
            f"SELECT p.seq FROM postings p{self._join_sql} WHERE p.term = ?{self._inside.further} "
            "ORDER BY p.seq DESC LIMIT ?"
        )
        return {seq for (seq,) in connection.execute(sql, (mark, *self._inside.values, count))}
