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

_CLEAN_EVERY = 64  # claims
_TEXTS = re.compile(r'"(?:[^"\\]|\\.)*"')
_claims = count()


def claim(connection: Connection, key: str) -> str | None:
    """Claim a key; return the stored result if it was claimed before. Waits for another transaction that claims it."""
    if next(_claims) % _CLEAN_EVERY == 0:
        clean(connection)
    if connection.execute("INSERT INTO notes (key, value) VALUES (?, '') ON CONFLICT DO NOTHING", (key,)).rowcount:
        return None
    (kept,) = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
    return str(kept)


def keep(connection: Connection, key: str, result_json: str) -> None:
    connection.execute("UPDATE notes SET value = ? WHERE key = ?", (result_json, key))


def clean(connection: Connection) -> None:
    """Delete expired receipts."""
    connection.execute("DELETE FROM notes WHERE key > ? AND key < ?", (receipts.PREFIX, receipts.oldest_kept()))


def forget_ids(connection: Connection, ids: Sequence[str]) -> None:
    """Delete the receipts that contain some ids."""
    sql = "SELECT key, value FROM notes WHERE key > ? AND key < ?"
    gone = set(map(json.dumps, ids))
    for key, result_json in connection.execute(sql, (receipts.PREFIX, receipts.PREFIX + "~")).fetchall():
        if not gone.isdisjoint(_TEXTS.findall(result_json)):
            connection.execute("DELETE FROM notes WHERE key = ?", (key,))


def once(
    write: Callable[[Callable[[Link], Result]], Result],
    kind: str,
    work: Callable[[Link], Result],
    to_json: Callable[[Result], Any] = lambda result: result,
    again: Callable[[Link, Any], Result] = lambda _, kept: kept,
) -> Result:
    """Run `write(work)`; for a request with an idempotency key only once. `to_json` converts the result to JSON, from
    which `again` restores it later; the JSON must have ids and no contents, which may be encrypted elsewhere."""
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
        keep(connection, key, json.dumps(to_json(result)))
        return result

    result = write(done)
    request.done[kind] += 1  # after success: what failed may be tried again with the same key
    return result


def put_once(
    write: Callable[[Callable[[Link], list[Memory]]], list[Memory]],
    work: Callable[[Link], list[Memory]],
    given: Sequence[Memory],
) -> list[Memory]:
    """Write memories once per request; their receipt has the ids and steps that they got."""

    def again(_: Link, kept: list[tuple[str, int]]) -> list[Memory]:
        memories = [memory.copied() for memory in given]
        for memory, (memory_id, step) in zip(memories, kept, strict=True):
            memory.memory_id, memory.step_number = memory_id, step
        return memories

    return once(
        write, "put", work, lambda memories: [(memory.memory_id, memory.step_number) for memory in memories], again
    )
