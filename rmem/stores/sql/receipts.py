"""Receipts in the table `notes` of a store: the result of a write, stored under the request's key in the same
transaction."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from ... import receipts
from ...models import Memory
from .connection import Connection

Link = TypeVar("Link", bound=Connection)
Result = TypeVar("Result")

_CLEANED = 64  # claims after which those that are too old are removed
_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"')
_claims = count()


def claim(connection: Connection, key: str) -> str | None:
    """Take a key; or, if that was done before, what was kept under it. Another transaction that took it is waited
    for."""
    if next(_claims) % _CLEANED == 0:
        clean(connection)
    if connection.execute("INSERT INTO notes (key, value) VALUES (?, '') ON CONFLICT DO NOTHING", (key,)).rowcount:
        return None
    (kept,) = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
    return str(kept)


def keep(connection: Connection, key: str, told: str) -> None:
    connection.execute("UPDATE notes SET value = ? WHERE key = ?", (told, key))


def clean(connection: Connection) -> None:
    """Remove the receipts that need not be kept any longer."""
    connection.execute("DELETE FROM notes WHERE key > ? AND key < ?", (receipts.PREFIX, receipts.oldest_kept()))


def forget_ids(connection: Connection, ids: Sequence[str]) -> None:
    """Remove the receipts that tell some ids."""
    sql = "SELECT key, value FROM notes WHERE key > ? AND key < ?"
    gone = set(map(json.dumps, ids))
    for key, told in connection.execute(sql, (receipts.PREFIX, receipts.PREFIX + "~")).fetchall():
        if not gone.isdisjoint(_TEXTS.findall(told)):
            connection.execute("DELETE FROM notes WHERE key = ?", (key,))


def once(
    write: Callable[[Callable[[Link], Result]], Result],
    kind: str,
    work: Callable[[Link], Result],
    told: Callable[[Result], Any] = lambda result: result,
    again: Callable[[Link, Any], Result] = lambda _, kept: kept,
) -> Result:
    """`write(work)`, for a request under way done the first time only. `told` makes JSON of what it gave, from which
    `again` gives the same later; it must hold ids and no contents, which may be encrypted elsewhere."""
    request = receipts.current()
    if request is None:
        return write(work)
    key = request.key(kind)

    def done(connection: Link) -> Result:
        kept = claim(connection, key)
        if kept is not None:
            request.replayed = True
            return again(connection, json.loads(kept))
        result = work(connection)
        keep(connection, key, json.dumps(told(result)))
        return result

    result = write(done)
    request.done[kind] += 1  # not before: what failed may be tried again, under the same key
    return result


def put_once(
    write: Callable[[Callable[[Link], list[Memory]]], list[Memory]],
    work: Callable[[Link], list[Memory]],
    given: Sequence[Memory],
) -> list[Memory]:
    """Return the same for memories that are written: told by the ids and steps that they got."""

    def again(_: Link, kept: list[tuple[str, int]]) -> list[Memory]:
        memories = [memory.copied() for memory in given]
        for memory, (memory_id, step) in zip(memories, kept, strict=True):
            memory.memory_id, memory.step_number = memory_id, step
        return memories

    return once(write, "put", work, lambda memories: [(one.memory_id, one.step_number) for one in memories], again)
