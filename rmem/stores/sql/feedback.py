"""Feedback on recalls in the SQL stores: one row for each recall and memory, removed with the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from ...feedback import FEEDBACK_ADDED, FEEDBACK_REMOVED, Feedback, new_token
from ..capabilities import FeedbackTable
from .base import SqlStore
from .connection import Connection

_COLUMNS = "recall, memory, question, agent, type, rank, score, useful, time"


def write(connection: Connection, feedback: Sequence[Feedback]) -> None:
    latest = {item.key: item for item in feedback}.values()
    remove(connection, list(latest))
    sql = f"INSERT INTO judgements ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    connection.executemany(sql, [astuple(item) for item in latest])
    connection.execute("INSERT INTO notes VALUES (?, ?) ON CONFLICT DO NOTHING", (FEEDBACK_REMOVED, ""))


def read(connection: Connection, since: float | None) -> list[Feedback]:
    sql = f"SELECT {_COLUMNS} FROM judgements WHERE time >= ? ORDER BY time"
    found = connection.execute(sql, (float("-inf") if since is None else since,))
    return [
        Feedback(recall, memory, question, agent, kind, rank, score, bool(useful), when)
        for recall, memory, question, agent, kind, rank, score, useful, when in found
    ]


def remove(connection: Connection, feedback: Sequence[Feedback]) -> None:
    sql = "DELETE FROM judgements WHERE recall = ? AND memory = ?"
    connection.executemany(sql, [item.key for item in feedback])


def forget(connection: Connection, memory_id: str) -> None:
    if connection.execute("DELETE FROM judgements WHERE memory = ?", (memory_id,)).rowcount:
        connection.execute("UPDATE notes SET value = ? WHERE key = ?", (new_token(), FEEDBACK_REMOVED))


class SqlFeedback(FeedbackTable, SqlStore):
    """The feedback as a capability of a store."""

    def add_feedback(self, feedback: Sequence[Feedback]) -> None:
        def work(connection: Connection) -> None:
            write(connection, feedback)
            connection.execute(self.dialect.set_meta, (FEEDBACK_ADDED, new_token()))

        self.write(work)

    def remove_feedback(self, feedback: Sequence[Feedback]) -> None:
        def work(connection: Connection) -> None:
            remove(connection, feedback)
            connection.execute(self.dialect.set_meta, (FEEDBACK_REMOVED, new_token()))

        if feedback:
            self.write(work)

    def feedback(self, since: float | None = None) -> list[Feedback]:
        return self.read(lambda connection: read(connection, since))
