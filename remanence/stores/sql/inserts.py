"""Appending rows: the steps and ids that memories lack are filled in, and a row with a known id takes the place of the
old one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ...models import Memory
from ..indexed import Derived, new_id
from ..packing import Codec
from . import keys as data_keys
from . import rows
from .sealing import Seal

_FETCH = 500  # ids in one statement


def append(
    connection: sqlite3.Connection,
    memories: Sequence[Memory],
    derived: Sequence[Derived],
    codec: Codec,
    seal: Seal | None,
) -> bool:
    """Insert memories, filling in the steps and ids that they lack; whether what was readable is now encrypted."""
    _fill_steps(connection, memories)
    (last,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memories'").fetchone() or (0,)
    taken = held(connection, [memory.memory_id or new_id(memory) for memory in memories])
    old_rows = [seq for seq, _ in taken.values()]
    data_keys.guard(connection, codec.vault, old_rows)
    hides = seal is not None and data_keys.replaces_readable(connection, old_rows)
    waiting: list[tuple[Any, ...]] = []
    for seq, (memory, parts) in enumerate(zip(memories, derived, strict=True), last + 1):
        if not memory.memory_id:
            memory.memory_id = _free_id(connection, new_id(memory), taken)
        old = taken.get(memory.memory_id)
        if old is not None:
            connection.executemany(rows.INSERT, waiting)  # it may be one of them
            waiting = []
            _remove(connection, old[0])
        born = seq if old is None else old[1]
        taken[memory.memory_id] = seq, born
        waiting.append(rows.to_row(memory, parts, born, codec, seal))
    connection.executemany(rows.INSERT, waiting)
    return hides


def _fill_steps(connection: sqlite3.Connection, memories: Sequence[Memory]) -> None:
    steps: dict[str, int] = {}  # the next one of each agent, as far as these memories tell
    asked: set[str] = set()
    for memory in memories:
        agent = memory.agent_id
        if memory.step_number < 0:
            if agent not in asked:
                (last,) = connection.execute("SELECT max(step) FROM memories WHERE agent = ?", (agent,)).fetchone()
                steps[agent] = max(steps.get(agent, 0), 0 if last is None else last + 1)
                asked.add(agent)
            memory.step_number = steps[agent]
        steps[agent] = max(steps.get(agent, 0), memory.step_number + 1)


def held(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Which of these ids are taken: (seq, born) of each."""
    found: dict[str, tuple[int, int]] = {}
    for start in range(0, len(ids), _FETCH):
        part = ids[start : start + _FETCH]
        sql = f"SELECT id, seq, born FROM memories WHERE id IN ({', '.join('?' * len(part))})"
        found |= {memory_id: (seq, born) for memory_id, seq, born in connection.execute(sql, part)}
    return found


def _free_id(connection: sqlite3.Connection, wanted: str, taken: dict[str, tuple[int, int]]) -> str:
    """An id that nobody has. `taken` knows about `wanted`, and about the rows that are yet to be inserted."""
    free, number = wanted, 1
    while free in taken or (number > 1 and held(connection, [free])):
        number += 1
        free = f"{wanted}-{number}"
    return free


def _remove(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("DELETE FROM memories WHERE seq = ?", (seq,))
    connection.execute("INSERT INTO changes (seq) VALUES (?)", (seq,))
