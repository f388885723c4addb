"""Append rows: fill in missing steps and ids, and replace rows with the same id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...models import Memory
from ..indexed import Derived, new_id
from ..packing import Codec
from . import facts, rows
from . import keys as data_keys
from .connection import Connection
from .encrypted_rows import Seal

_FETCH = 500  # ids in one statement
LAST_STEP = f"SELECT max(step) FROM memories WHERE agent = ? AND step <= {2**63 - 1}"  # a damaged one may be a text

Insert = Callable[[list[tuple[Memory, Derived, tuple[Any, ...]]]], None]
"""Writes rows: memories, what was derived from them, and the values of rows.COLUMNS."""


def append(
    connection: Connection,
    memories: Sequence[Memory],
    derived: Sequence[Derived],
    codec: Codec,
    seal: Seal | None,
    last: int,
    insert: Insert | None = None,
) -> bool:
    """Insert memories after the row `last`, with missing steps and ids filled in; return whether readable data is now
    encrypted."""

    def write(waiting: list[tuple[Memory, Derived, tuple[Any, ...]]]) -> None:
        if insert is not None:
            insert(waiting)
        else:
            connection.executemany(rows.INSERT, [values for _, _, values in waiting])
        found = [
            row
            for memory, parts, values in waiting
            if parts.facts
            for row in facts.to_rows(
                values[0], memory, parts.facts, codec.vault, None if seal is None else seal.version
            )
        ]
        if found:
            connection.executemany(facts.INSERT, found)

    _fill_steps(connection, memories)
    wanted = [memory.memory_id or new_id(memory) for memory in memories]
    taken = existing_ids(connection, wanted)
    old_rows = [seq for seq, _ in taken.values()]
    hides = seal is not None and data_keys.replaces_readable(connection, old_rows)
    waiting: list[tuple[Memory, Derived, tuple[Any, ...]]] = []
    for seq, (memory, parts) in enumerate(zip(memories, derived, strict=True), last + 1):
        if not memory.memory_id:
            memory.memory_id = _free_id(connection, wanted[seq - last - 1], taken)
        old = taken.get(memory.memory_id)
        if old is not None:
            write(waiting)  # the new id may be among them
            waiting = []
            _remove(connection, old[0])
        original_seq = seq if old is None else old[1]
        taken[memory.memory_id] = seq, original_seq
        waiting.append((memory, parts, rows.to_row(memory, parts, seq, original_seq, codec, seal)))
    write(waiting)
    return hides


def _fill_steps(connection: Connection, memories: Sequence[Memory]) -> None:
    steps: dict[str, int] = {}  # the next step of each agent, as far as known
    read_agents: set[str] = set()
    for memory in memories:
        agent = memory.agent_id
        if memory.step_number < 0:
            if agent not in read_agents:
                (last,) = connection.execute(LAST_STEP, (agent,)).fetchone()
                steps[agent] = max(steps.get(agent, 0), 0 if last is None else last + 1)
                read_agents.add(agent)
            memory.step_number = steps[agent]
        steps[agent] = max(steps.get(agent, 0), memory.step_number + 1)


def existing_ids(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return (seq, original seq) of those ids that exist."""
    found: dict[str, tuple[int, int]] = {}
    for start in range(0, len(ids), _FETCH):
        part = ids[start : start + _FETCH]
        sql = f"SELECT id, seq, born FROM memories WHERE id IN ({', '.join('?' * len(part))})"
        found |= {memory_id: (seq, original_seq) for memory_id, seq, original_seq in connection.execute(sql, part)}
    return found


def _free_id(connection: Connection, wanted: str, taken: dict[str, tuple[int, int]]) -> str:
    """Return an unused id. `taken` has `wanted`, and the ids of rows that are not inserted yet."""
    free, number = wanted, 1
    while free in taken or (number > 1 and existing_ids(connection, [free])):
        number += 1
        free = f"{wanted}-{number}"
    return free


def _remove(connection: Connection, seq: int) -> None:
    connection.execute("DELETE FROM memories WHERE seq = ?", (seq,))
    connection.execute("INSERT INTO changes (seq) VALUES (?)", (seq,))
