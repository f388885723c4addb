"""The rows and changes that a vector engine beside the store follows."""

from __future__ import annotations

from typing import ClassVar

from ..capabilities import VectorFeed, VectorRow, VectorState
from . import rows
from .base import SqlStore
from .connection import Connection


class SqlVectorFeed(VectorFeed, SqlStore):
    """The vector feed as a capability of a store."""

    changes_kept: ClassVar[int]
    """How many of the latest entries of the change log are kept at least."""

    def vector_state(self) -> VectorState:
        row, change, generation = self.read(self.read_state)
        return VectorState(row, change, str(generation))

    def vectors_after(self, seq: int, limit: int) -> list[VectorRow]:
        def work(connection: Connection) -> list[VectorRow]:
            noted = self.vector_metadata(connection).get("dimension")
            dimension = None if noted is None else int(noted)
            found = connection.execute(
                "SELECT seq, vector, level, agent, session, type, actor, time FROM memories WHERE seq > ? "
                "ORDER BY seq LIMIT ?",
                (seq, limit),
            ).fetchall()
            return [
                VectorRow(row, rows.vector_of(vector, level, dimension), *fields)
                for row, vector, level, *fields in found
            ]

        return self.read(work)

    def removed_after(self, change: int) -> tuple[list[int], int] | None:
        def work(connection: Connection) -> tuple[list[int], int] | None:
            _, last, _ = self.read_state(connection)
            if last == change:
                return [], last
            (first,) = connection.execute("SELECT min(n) FROM changes").fetchone()
            # Only the oldest are ever deleted, and never those within `changes_kept` of the last.
            if change < last - self.changes_kept and (first is None or change + 1 < first):
                return None
            sql = "SELECT seq FROM changes WHERE n > ? AND n <= ? AND tier IS NULL ORDER BY n"
            return [seq for (seq,) in connection.execute(sql, (change, last))], last

        return self.read(work)
