"""What the figures are held against: the plain way to do each thing, on the same data in the same process."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rmem.index.stopwords import ENGLISH

Matrix = npt.NDArray[np.float32]

_WORD = re.compile(r"\w+")


class BareInsert:
    """Rows of the store's own table put into a plain table of another file, each durable like ours.

    Same values, page size, journal and fsync; no index, no checks, nothing derived.
    """

    def __init__(self, store: Path, path: Path) -> None:
        self._source = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        described = self._source.execute("PRAGMA table_info(memories)").fetchall()
        columns = [name for _, name, *_ in described]
        (page_size,) = self._source.execute("PRAGMA page_size").fetchone()
        self._target = sqlite3.connect(path, isolation_level=None)
        self._target.execute(f"PRAGMA page_size = {page_size}")
        self._target.execute("PRAGMA journal_mode = WAL")
        self._target.execute("PRAGMA synchronous = FULL")
        rest = ", ".join(column for column in columns if column != "seq")
        self._target.execute(f"CREATE TABLE memories (seq INTEGER PRIMARY KEY, {rest})")
        self._read = f"SELECT {', '.join(columns)} FROM memories WHERE id = ?"
        self._write = f"INSERT INTO memories ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"

    def row(self, memory_id: str) -> tuple[object, ...]:
        found: tuple[object, ...] = self._source.execute(self._read, (memory_id,)).fetchone()
        return found

    def insert(self, row: tuple[object, ...]) -> None:
        self._target.execute(self._write, row)

    def close(self) -> None:
        self._source.close()
        self._target.close()


class FullText:
    """SQLite's FTS5 over the same texts: any of the words, in the order of bm25()."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='porter unicode61')")
        self._rows = 0

    def add(self, texts: Sequence[str]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts, self._rows + 1))
        self._connection.execute("COMMIT")
        self._rows += len(texts)

    def optimise(self) -> None:
        self._connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")

    def search(self, question: str, k: int, *, drop_function_words: bool) -> list[int]:
        words = dict.fromkeys(_WORD.findall(question.lower()))
        kept = [word for word in words if not (drop_function_words and word in ENGLISH)] or list(words)
        asked = " OR ".join(f'"{word}"' for word in kept)
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?"
        return [row for (row,) in self._connection.execute(sql, (asked, k))]

    def close(self) -> None:
        self._connection.close()


class BruteForce:
    """Every float32 vector times the query, then the k highest. Kept in a mapped file, so that a million fit."""

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._room = path, rows
        self._matrix: Matrix | None = None
        self.size = 0

    def add(self, vectors: Matrix) -> None:
        if self._matrix is None:
            mapped = np.memmap(self._path, np.float32, "w+", shape=(self._room, vectors.shape[1]))
            self._matrix = np.asarray(mapped)
        self._matrix[self.size : self.size + len(vectors)] = vectors
        self.size += len(vectors)

    def nearest(self, query: npt.NDArray[np.float32], k: int, rows: npt.NDArray[np.int64] | None = None) -> list[int]:
        """Row numbers of the highest products, best first; among some `rows` only, where given."""
        if self._matrix is None:
            return []
        matrix = self._matrix[: self.size] if rows is None else self._matrix[rows]
        scores = matrix @ query
        best = np.argpartition(scores, -k)[-k:] if scores.size > k else np.arange(scores.size)
        best = best[np.argsort(-scores[best])]
        return [int(row) for row in (best if rows is None else rows[best])]


class BruteStates:
    """Every state's numbers against a question's, in standard deviations, then the k nearest."""

    def __init__(self) -> None:
        self._parts: list[list[float]] = []
        self._matrix = self._scale = np.empty(0)

    def add(self, states: Sequence[Sequence[float]]) -> None:
        self._parts += [list(numbers) for numbers in states]

    def settle(self) -> None:
        """All states are there."""
        self._matrix = np.array(self._parts, np.float64)
        self._scale = self._matrix.std(axis=0)

    def nearest(self, query: npt.NDArray[np.float64], k: int) -> list[npt.NDArray[np.float64]]:
        away = (self._matrix - query) / self._scale
        total = np.einsum("ij,ij->i", away, away)
        best = np.argpartition(total, k)[:k] if total.size > k else np.arange(total.size)
        return [self._matrix[row] for row in best[np.argsort(total[best])]]
